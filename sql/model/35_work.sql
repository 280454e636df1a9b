-- What a training step must do, by the coefficients that traces gave (catalog/recipe_work.csv).

CREATE OR REPLACE MACRO work_recipe(
    is_full, is_quantized, kbit_upcast, autocast, training_precision, adapter_bytes, shards_weights
) AS
    CASE
        -- Sharded weights are gathered in 16 bits.
        WHEN is_full AND NOT shards_weights AND training_precision IN ('amp', 'fp16') THEN 'full-amp'
        WHEN is_full AND training_precision = 'fp32' THEN 'full-fp32'
        WHEN is_full THEN 'full'
        ELSE concat(
            CASE WHEN is_quantized THEN 'qlora' ELSE 'lora' END,
            CASE WHEN is_quantized AND kbit_upcast = 1 AND NOT shards_weights THEN '-upcast' END,
            CASE
                WHEN shards_weights THEN '-16bit-adapters'
                WHEN autocast = 1 OR training_precision = 'fp16' THEN '-autocast'
                WHEN adapter_bytes < 4 AND kbit_upcast = 0 THEN '-16bit-adapters'
            END
        )
    END;
COMMENT ON FUNCTION work_recipe IS
    'The recipe of recipe_work that a run''s settings mean: which weights train, in which type, and whether autocast chooses the types of the products.';

CREATE OR REPLACE MACRO attention_kernel(flash_attention, architecture) AS
    CASE
        WHEN flash_attention = 0 THEN 'eager'
        WHEN architecture IN ('Kepler', 'Maxwell', 'Pascal', 'Volta', 'Turing') THEN 'efficient'
        ELSE 'flash'
    END;
COMMENT ON FUNCTION attention_kernel IS
    'The attention kernel of torch: flash attention needs compute capability 8.0, else it takes its memory-efficient one.';

CREATE OR REPLACE MACRO adapter_outputs(target, hidden, query, key_value, intermediate, experts) AS
    CASE target
        WHEN 'q_proj' THEN query
        WHEN 'k_proj' THEN key_value
        WHEN 'v_proj' THEN key_value
        WHEN 'o_proj' THEN hidden
        WHEN 'qkv_fused' THEN query + 2 * key_value
        WHEN 'gate_proj' THEN intermediate * experts
        WHEN 'up_proj' THEN intermediate * experts
        WHEN 'down_proj' THEN hidden * experts
        ELSE 0
    END;
COMMENT ON FUNCTION adapter_outputs IS 'Outputs of one adapted linear layer, in features.';

CREATE OR REPLACE MACRO work_coefficients() AS TABLE
WITH _work_lists AS (
    SELECT
        recipe, attention, part, quantity,
        [
            layer_token_hidden, layer_token_query, layer_token_key_value, layer_token_intermediate,
            layer_token_adapted_in, layer_token_adapted_out, layer_token_adapter_rank, layer_token_scores,
            layer_token_grouped_query, layer_token_unadapted_down, token_hidden
        ] AS per_token,
        token_vocab AS per_logit,
        [layer_weights, unadapted_down_weights, head_weights, tied_head_weights, adapter_weights]
            AS per_weight,
        [
            token_layer_weights, token_unadapted_down_weights, token_head_weights, token_adapter_weights,
            layer_token_attention
        ] AS per_token_flops,
        [layers, layer_adapters, grouped_layers, unadapted_down_layers, once] AS per_layer
    FROM main.recipe_work
)

SELECT
    recipe, attention, part,
    any_value(per_token) FILTER (quantity = 'moved_bytes') AS moved_per_token,
    coalesce(any_value(per_logit) FILTER (quantity = 'moved_bytes'), 0e0) AS moved_per_logit,
    any_value(per_weight) FILTER (quantity = 'moved_bytes') AS moved_per_weight,
    any_value(per_weight) FILTER (quantity = 'dequantized_bytes') AS dequantized_per_weight,
    any_value(per_token_flops) FILTER (quantity = 'flops_16bit') AS flops_16bit_per_token,
    any_value(per_token_flops) FILTER (quantity = 'flops_fp32') AS flops_fp32_per_token,
    any_value(per_token_flops) FILTER (quantity = 'attention_flops_16bit') AS attention_16bit_per_token,
    any_value(per_token_flops) FILTER (quantity = 'attention_flops_fp32') AS attention_fp32_per_token,
    any_value(per_layer) FILTER (quantity = 'kernels') AS kernels_per_layer,
    any_value(per_layer) FILTER (quantity = 'python_operations') AS python_per_layer,
    any_value(per_layer) FILTER (quantity = 'autograd_operations') AS autograd_per_layer
FROM _work_lists
GROUP BY ALL;
COMMENT ON MACRO TABLE work_coefficients IS
    'The coefficients of recipe_work as lists, a row per recipe, attention kernel and part.';

CREATE OR REPLACE MACRO total(coefficients, features) AS
    coalesce(list_dot_product(coefficients, features), 0e0);
COMMENT ON FUNCTION total IS 'Sum of the products of two lists; 0 where there are no coefficients.';

CREATE OR REPLACE MACRO work_features(settings) AS TABLE
WITH _work_targets AS (
    SELECT
        *,
        CASE WHEN is_full THEN []::VARCHAR[] ELSE list_filter(
            string_split(lora_targets, '+'), lambda target: target <> 'lm_head'
        ) END AS _targets,
        CASE WHEN NOT is_full AND contains(lora_targets, 'down_proj') THEN 0e0 ELSE 1e0 END
            AS _unadapted_down,
        CASE WHEN key_value_width < query_width THEN 1e0 ELSE 0e0 END AS _is_grouped,
        -- An MLP that is not gated has half the tensors.
        active_intermediate * mlp_tensors / 4 AS _mlp_width,
        CASE checkpointing WHEN 'full' THEN 1e0 WHEN 'sac' THEN k.recompute_selective ELSE 0e0 END
            AS recompute_passes
    FROM query_table(settings)
),

_work_adapters AS (
    SELECT
        *,
        coalesce(list_sum(list_transform(_targets, lambda target:
            adapter_outputs(target, hidden, query_width, key_value_width, intermediate, experts_active)
        ))::DOUBLE, 0e0) AS _adapted_out,
        coalesce(list_sum(list_transform(_targets, lambda target:
            adapter_width(target, hidden, query_width, key_value_width, intermediate, experts_active)
        ))::DOUBLE, 0e0) AS _adapted_width,
        len(_targets)::DOUBLE AS _adapters
    FROM _work_targets
)

SELECT
    * EXCLUDE (
        _targets, _unadapted_down, _is_grouped, _mlp_width, _adapted_out, _adapted_width, _adapters,
        tied_embeddings
    ),
    [
        layers * hidden, layers * query_width, layers * key_value_width, layers * _mlp_width,
        layers * (_adapted_width - _adapted_out), layers * _adapted_out, layers * _adapters * lora_rank,
        layers * heads * seq_len, layers * query_width * _is_grouped, layers * hidden * _unadapted_down,
        hidden
    ]::DOUBLE[] AS token_features,
    [
        params_linear, layers * hidden * _mlp_width * _unadapted_down, vocab * hidden,
        vocab * hidden * tied_embeddings, adapter_params
    ]::DOUBLE[] AS weight_features,
    [
        linear_active, layers * hidden * _mlp_width * _unadapted_down, vocab * hidden,
        adapter_params * experts_active / experts, layers * attended_length * query_width
    ]::DOUBLE[] AS flop_features,
    [layers, layers * _adapters, layers * _is_grouped, layers * _unadapted_down, 1]::DOUBLE[]
        AS layer_features
FROM _work_adapters;
COMMENT ON MACRO TABLE work_features IS
    'Settings of runs with the features that recipe_work has coefficients for, in the order of work_coefficients; those per token without the tokens.';

CREATE OR REPLACE MACRO with_work(settings) AS TABLE
WITH _work_features AS (
    SELECT
        *,
        CASE WHEN kernels = 'eager' THEN work_recipe(
            is_full, is_quantized, kbit_upcast, autocast, training_precision, adapter_bytes, shards_weights
        ) END AS _recipe,
        attention_kernel(flash_attention, architecture) AS attention
    FROM work_features(settings)
),

_work_coefficients AS (
    SELECT * FROM work_coefficients()
)

SELECT
    f.* EXCLUDE (_recipe, token_features, weight_features, flop_features, layer_features),
    s.recipe IS NOT NULL AS is_counted,
    total(s.moved_per_token, token_features) + recompute_passes * total(r.moved_per_token, token_features)
        AS moved_bytes_per_token,
    vocab * s.moved_per_logit AS logit_bytes_per_token,
    total(s.moved_per_weight, weight_features) + recompute_passes * total(r.moved_per_weight, weight_features)
        AS moved_weight_bytes,
    total(s.dequantized_per_weight, weight_features)
        + recompute_passes * total(r.dequantized_per_weight, weight_features) AS dequantized_traffic_bytes,
    total(s.flops_16bit_per_token, flop_features)
        + recompute_passes * total(r.flops_16bit_per_token, flop_features) AS flops_16bit_per_token,
    total(s.flops_fp32_per_token, flop_features)
        + recompute_passes * total(r.flops_fp32_per_token, flop_features) AS flops_fp32_per_token,
    total(s.attention_16bit_per_token, flop_features)
        + recompute_passes * total(r.attention_16bit_per_token, flop_features) AS attention_16bit_per_token,
    total(s.attention_fp32_per_token, flop_features)
        + recompute_passes * total(r.attention_fp32_per_token, flop_features) AS attention_fp32_per_token,
    total(s.kernels_per_layer, layer_features) + recompute_passes * total(r.kernels_per_layer, layer_features)
        AS kernel_launches,
    total(s.python_per_layer, layer_features) + recompute_passes * total(r.python_per_layer, layer_features)
        AS python_operations,
    total(s.autograd_per_layer, layer_features) AS autograd_operations
FROM _work_features AS f
LEFT JOIN _work_coefficients AS s
    ON s.recipe = f._recipe AND s.attention = f.attention AND s.part = 'step'
LEFT JOIN _work_coefficients AS r
    ON r.recipe = f._recipe AND r.attention = f.attention AND r.part = 'recompute';
COMMENT ON MACRO TABLE with_work IS
    'Settings of runs with what a micro-step must do, per token and fixed: bytes, FLOPs (attention as if not causal), kernels and host operations. is_counted: whether traces of the recipe say it; else all are 0.';
