-- The traced recipe of a run.

CREATE OR REPLACE MACRO recipe_named(recipe) AS
    CASE
        WHEN recipe IS NULL OR recipe IN (SELECT s.recipe FROM main.recipe_settings AS s) THEN recipe
        ELSE error(
            'recipe: ' || recipe || ' is not one of '
            || (SELECT string_agg(s.recipe, ', ' ORDER BY s.recipe) FROM main.recipe_settings AS s)
        )
    END;
COMMENT ON FUNCTION recipe_named IS 'The given name of a recipe in catalog/recipes.yaml, or null if no name is given; raises an error that lists the recipes if the name is unknown.';

CREATE OR REPLACE MACRO least_agreeing_runs() AS 3;
COMMENT ON FUNCTION least_agreeing_runs IS
    'Number of measured runs that must agree with their traces before a recipe''s memory counts as traced.';

CREATE OR REPLACE MACRO with_recipes(settings) AS TABLE
WITH _recipes_found AS (
    SELECT
        s.* REPLACE (coalesce(recipe_named(s.recipe), r.recipe) AS recipe),
        coalesce(s.recipe IS NULL AND s.is_quantized AND r.method = 'lora', FALSE) AS is_traced_unquantized
    FROM query_table(settings) AS s
    LEFT JOIN main.recipe_settings AS r
        ON r.is_mapped = 1
        AND r.stack = s.stack
        AND (r.method, r.quantization) = CASE
            -- No trace is of QLoRA without upcasts in this stack; its activations are those of LoRA.
            WHEN s.is_quantized AND s.stack = 'hf' AND s.kbit_upcast = 0 THEN ('lora', 'none')
            ELSE (
                CASE s.method WHEN 'pretrain' THEN 'full' ELSE s.method END,
                CASE s.quantization WHEN 'nf4dq' THEN 'nf4' ELSE s.quantization END
            )
        END
        AND r.kbit_upcast = CASE WHEN s.is_quantized THEN s.kbit_upcast ELSE 0e0 END
        AND r.training_precision = s.training_precision
        AND r.checkpointing = s.checkpointing
        AND r.flash_attention = least(1, s.flash_attention)
        -- Sharding the training state changes nothing about activations, unless weights are gathered.
        AND r.sharding = 'none'
        AND (s.sharding IN ('none', 'ddp') OR (s.sharding IN ('zero1', 'zero2') AND r.kbit_upcast = 0))
        AND coalesce(r.offload, '') = s.offload
        AND coalesce(r.loss_kernel, s.stack_loss_kernel) = s.loss_kernel
        AND coalesce(r.adapter_bytes, s.adapter_bytes) = s.adapter_bytes
        AND coalesce(r.adapts_mlp, 0) = s.adapts_mlp
        AND (r.optimizer LIKE '%inbwd%') = (s.optimizer LIKE '%inbwd%')
        AND s.fp8 = 0 AND s.tensor_parallel = 1 AND s.pipeline_parallel = 1 AND s.context_parallel = 1
)

SELECT
    f.*,
    -- Each rank under DDP holds all that a single GPU holds. A recipe that a run names is traced as it is.
    r.recipe IS NOT NULL AND NOT f.is_traced_unquantized
        AND (f.sharding IN ('none', 'ddp') OR r.sharding = f.sharding) AS is_traced_whole,
    coalesce(r.sharding, 'none') AS recipe_sharding, r.grad_accum AS recipe_grad_accum,
    -- 1 if only the run's adapters have dropout, -1 if only the traced adapters do, and 0 otherwise.
    CASE
        WHEN f.lora_dropout IS NULL OR f.is_full THEN 0e0
        ELSE (f.lora_dropout > 0)::INTEGER - coalesce(r.lora_dropout > 0, FALSE)::INTEGER
    END::DOUBLE AS untraced_dropout,
    -- If a family is held out, its runs may not prove a recipe either.
    coalesce(
        r.agreeing_runs >= least_agreeing_runs()
        AND f.calibration IS DISTINCT FROM 'without ' || r.proving_family,
        FALSE
    ) AS has_proven_recipe,
    -- If adamw is not the foreach kernel, adamw is the fused kernel.
    coalesce(
        r.optimizer
        = CASE WHEN f.optimizer = 'adamw' AND NOT f.has_foreach THEN 'adamw_fused' ELSE f.optimizer END,
        FALSE
    ) AS has_recipe_optimizer
FROM _recipes_found AS f
LEFT JOIN main.recipe_settings AS r ON r.recipe = f.recipe;
COMMENT ON MACRO TABLE with_recipes IS
    'The settings of runs with the traced recipe of each run: the recipe that the run names, or else the recipe to which recipe_settings maps the run''s settings; null if there is no such recipe.';
