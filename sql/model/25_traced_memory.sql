-- The features on which the bytes and the work of a training step depend linearly.

CREATE OR REPLACE MACRO features_of(settings) AS TABLE
SELECT
    *,
    CASE WHEN is_full THEN 0e0 ELSE lora_rank * len(string_split(lora_targets, '+')) END AS adapted_width,
    MAP {
        'layers x hidden': layers * hidden,
        'layers x query': layers * query_width,
        'layers x key value': layers * key_value_width,
        -- Width of the MLP, summed over the experts that a token uses.
        'layers x intermediate': layers * active_intermediate,
        -- Attention scores, if attention is not fused.
        'layers x scores': layers * heads * seq_len,
        'layers x adapters': layers * adapted_width,
        'layers x heads': layers * heads,
        'hidden': hidden, 'query': query_width, 'key value': key_value_width,
        'intermediate': active_intermediate, 'scores': heads * seq_len, 'adapters': adapted_width,
        'vocabulary': vocab, 'heads': heads,
        -- For attention masks.
        'length': seq_len,
        'token': 1
    }::MAP (VARCHAR, DOUBLE) AS token_features,
    MAP {
        'linear parameters': params_linear,
        'quantized linear bytes': params_linear * CASE WHEN is_quantized THEN quantized_bytes ELSE 0e0 END,
        'embedding parameters': vocab * hidden::DOUBLE,
        'head parameters': vocab * hidden::DOUBLE * (1 - tied_embeddings),
        'norm parameters': layers * hidden,
        'trained parameters': CASE WHEN is_full THEN params_total ELSE adapter_params END,
        'linear parameters of a layer': params_linear / layers,
        'matrix of the MLP': hidden * intermediate, 'matrix of the query': hidden * query_width,
        'trained parameters of a layer':
            CASE WHEN is_full THEN params_linear ELSE adapter_params END / layers,
        'rotary table': seq_len * query_width / heads, 'layers': layers,
        'tied parameters': vocab * hidden::DOUBLE * tied_embeddings,
        'one': 1
    }::MAP (VARCHAR, DOUBLE) AS fixed_features
FROM query_table(settings);
COMMENT ON MACRO TABLE features_of IS
    'The settings of runs, plus the features for which recipe_memory gives bytes per unit, as maps keyed by feature name: token_features (per token of a micro-batch) and fixed_features.';

CREATE OR REPLACE MACRO traced_term(moment, category) AS
    CASE
        WHEN moment <> 'optimizer_step' THEN CASE WHEN category <> 'optimizer' THEN moment END
        WHEN category IN ('weights', 'adapters', 'gradients', 'optimizer', 'workspace') THEN category
        ELSE 'step_copy'
    END;
COMMENT ON FUNCTION traced_term IS
    'The term of the memory model to which the bytes in a row of recipe_memory belong: in the optimizer step, each purpose has its own term; at other moments, one term covers everything except the optimizer state.';

CREATE OR REPLACE MACRO shown_term(moment, category) AS
    CASE
        WHEN moment = 'loss' AND category = 'stored_activations' THEN 'stored'
        WHEN moment = 'loss_backward' AND category = 'logits' THEN 'logits'
        WHEN moment = 'last_layer_backward'
            AND category IN ('working_set', 'temporaries', 'hidden_temporaries') THEN 'working'
    END;
COMMENT ON FUNCTION shown_term IS
    'The term under which bytes of recipe_memory are shown, in addition to the term of their moment; null if there is no such term.';

CREATE OR REPLACE MACRO traced_coefficients() AS TABLE
SELECT recipe, term, feature, sum(bytes) AS bytes
FROM (
    SELECT
        r.recipe,
        -- Traces with one kind of quantization cannot tell the bytes of weights from the number of weights.
        s.method = 'qlora' AND r.category = 'weights' AND r.feature = 'linear parameters' AS is_packed,
        CASE WHEN s.double_quantization = 1 THEN 'nf4dq' ELSE s.quantization END AS traced_quantization,
        CASE WHEN is_packed THEN 'quantized linear bytes' ELSE r.feature END AS feature,
        r.bytes / CASE WHEN is_packed THEN quantized_weight_bytes(traced_quantization) ELSE 1e0 END AS bytes,
        unnest([traced_term(r.moment, r.category), shown_term(r.moment, r.category)]) AS term
    FROM main.recipe_memory AS r
    JOIN main.recipe_settings AS s ON s.recipe = r.recipe
)
WHERE term IS NOT NULL
GROUP BY ALL;
COMMENT ON MACRO TABLE traced_coefficients IS
    'Bytes per unit of each feature, for each term of each traced recipe.';

CREATE OR REPLACE MACRO term_sum(is_of_term, bytes) AS
    -- Rounded to a thousandth, because the last digits of a sum depend on the order in which threads add.
    round(coalesce(sum(bytes) FILTER (is_of_term), 0e0), 3);
COMMENT ON FUNCTION term_sum IS 'Bytes of one term, summed over its features.';

CREATE OR REPLACE MACRO term_sums(term, bytes) AS {
    'forward': term_sum(term = 'forward_layers', bytes),
    'forward_2': term_sum(term = 'forward_layers_2', bytes),
    'loss': term_sum(term = 'loss', bytes),
    'loss_2': term_sum(term = 'loss_2', bytes),
    'loss_backward': term_sum(term = 'loss_backward', bytes),
    'loss_backward_2': term_sum(term = 'loss_backward_2', bytes),
    'last_layer': term_sum(term = 'last_layer_backward', bytes),
    'last_layer_2': term_sum(term = 'last_layer_backward_2', bytes),
    'first_layer': term_sum(term = 'first_layer_backward', bytes),
    'first_layer_2': term_sum(term = 'first_layer_backward_2', bytes),
    'weights': term_sum(term = 'weights', bytes),
    'adapters': term_sum(term = 'adapters', bytes),
    'gradients': term_sum(term = 'gradients', bytes),
    'optimizer': term_sum(term = 'optimizer', bytes),
    'step_copy': term_sum(term = 'step_copy', bytes),
    'workspace': term_sum(term = 'workspace', bytes),
    'stored': term_sum(term = 'stored', bytes),
    'working': term_sum(term = 'working', bytes),
    'logits': term_sum(term = 'logits', bytes)
};
COMMENT ON FUNCTION term_sums IS 'Bytes of each term, summed over its features.';

CREATE OR REPLACE MACRO runs_traced_code(model, experts, mlp_tensors) AS
    experts = 1 AND mlp_tensors = 4 AND model NOT LIKE 'gemma-2-%';
COMMENT ON FUNCTION runs_traced_code IS
    'True if a model runs the kind of code from which the coefficients were learned: the model is dense, and has a gated MLP and uncapped attention scores. For other models, the general formulas apply.';

CREATE OR REPLACE MACRO traced_of(settings) AS TABLE
WITH _traced_runs AS (
    -- Runs that differ only in other columns count once: a plan asks about many cards and sizes for one job.
    SELECT DISTINCT
        recipe, method, model, quantization, lora_rank, lora_targets, seq_len, token_features, fixed_features
    FROM features_of(settings)
    WHERE recipe IS NOT NULL AND runs_traced_code(model, experts, mlp_tensors)
)

SELECT
    r.recipe, r.method, r.model, r.quantization, r.lora_rank, r.lora_targets, r.seq_len,
    term_sums(c.term, coalesce(c.bytes * r.fixed_features[c.feature], 0e0)) AS traced_fixed,
    term_sums(c.term, coalesce(c.bytes * r.token_features[c.feature], 0e0)) AS traced_per_token
FROM _traced_runs AS r
JOIN traced_coefficients() AS c ON c.recipe = r.recipe
GROUP BY ALL;
COMMENT ON MACRO TABLE traced_of IS
    'The bytes of each term of a run''s traced recipe: fixed, and per token of a micro-batch.';
