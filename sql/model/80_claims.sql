-- What the model and published runs say about the settings that claims name.
-- noqa: disable=LT05

CREATE OR REPLACE MACRO figure(number) AS
    CASE
        WHEN abs(number::DOUBLE) >= 1e9 THEN format('{:.4g} billion', number::DOUBLE / 1e9)
        WHEN abs(number::DOUBLE) >= 1e6 THEN format('{:.4g} million', number::DOUBLE / 1e6)
        WHEN abs(number::DOUBLE) >= 1000 THEN format('{:,.0f}', number::DOUBLE)
        ELSE format('{:.4g}', number::DOUBLE)
    END;
COMMENT ON FUNCTION figure IS 'A number as a person writes it, with four significant digits.';

CREATE OR REPLACE MACRO figures(low, high) AS
    CASE WHEN high IS NULL OR high = low THEN figure(low) WHEN isinf(high::DOUBLE) THEN figure(low) || ' or more'
        ELSE figure(low) || ' to ' || figure(high) END;
COMMENT ON FUNCTION figures IS 'A number or a range as a person writes it.';

CREATE OR REPLACE MACRO claim_rule(rule) AS (SELECT r.value FROM main.claim_rules AS r WHERE r.name = rule);
COMMENT ON FUNCTION claim_rule IS 'One tolerance of main.claim_rules.';

-- A claim rarely names every setting, so it is tried in the ways that people would run it. "Friendly" software
-- takes the least memory with an ordinary optimizer: fused kernels, fused AdamW; "plain" is a framework's
-- default. "Lean" is an 8-bit optimizer that steps during the backward pass: a method of its own, which a claim
-- would have to name; what it takes is only mentioned.
CREATE OR REPLACE MACRO claim_runs() AS TABLE
WITH _claims AS (
    SELECT
        claim_id, quantity, kind, versus, seq_len, lora_rank, gpu_count, checkpointing, stack, micro_batch, quantization,
        model, method, training_precision,
        split_part(versus, '=', 1) AS changed,
        split_part(versus, '=', 2) AS changed_to,
        -- Memory hardly depends on the card: where a claim names none, a data-centre card stands for all.
        coalesce(gpu_id, 'a100-sxm-80gb') AS gpu
    FROM main.claims
    WHERE model IS NOT NULL AND method IS NOT NULL AND kind <> 'quality'
),

_roles (role) AS (VALUES ('claim'), ('versus')),

_counts (gpus) AS (VALUES (1), (2), (4), (8), (16)),

_software (way, software, optimizer, quantized_as, upcast) AS (
    VALUES ('friendly', 'liger', 'adamw_fused', 'nf4dq', 0), ('plain', 'hf', 'adamw', 'nf4', 1), ('lean', 'liger', 'adamw8bit_inbwd', NULL, NULL)
),

_checkpointings (recompute) AS (VALUES ('none'), ('full')),

_batches (sequences) AS (VALUES (1), (4), (16)),

_spreads (spread) AS (VALUES ('ddp'), ('fsdp')),

_tried AS (
    SELECT
        c.* EXCLUDE (micro_batch, gpu, method, checkpointing, stack, training_precision),
        r.role, n.gpus, s.way, s.optimizer, s.quantized_as, s.upcast, d.spread,
        coalesce(c.micro_batch, b.sequences) AS micro_batch,
        r.role = 'versus' AND c.changed = 'gpu_id' AS other_gpu,
        CASE WHEN other_gpu THEN c.changed_to ELSE c.gpu END AS gpu,
        CASE WHEN r.role = 'versus' AND c.changed = 'method' THEN c.changed_to ELSE c.method END AS method,
        CASE WHEN r.role = 'versus' AND c.changed = 'checkpointing' THEN c.changed_to ELSE k.recompute END AS checkpointing,
        CASE WHEN r.role = 'versus' AND c.changed = 'stack' THEN c.changed_to ELSE coalesce(c.stack, s.software) END AS stack,
        CASE WHEN r.role = 'versus' AND c.changed = 'training_precision' THEN c.changed_to ELSE c.training_precision END
            AS training_precision,
        CASE WHEN c.changed = 'fp8' THEN CASE r.role WHEN 'versus' THEN c.changed_to::DOUBLE ELSE 1e0 END END AS fp8,
        -- Names what was tried without what is compared, so that both sides of a ratio find each other.
        concat_ws(' ', s.way, k.recompute, b.sequences) AS variation
    FROM _claims AS c
    CROSS JOIN _roles AS r
    CROSS JOIN _counts AS n
    CROSS JOIN _software AS s
    CROSS JOIN _checkpointings AS k
    CROSS JOIN _batches AS b
    CROSS JOIN _spreads AS d
    WHERE (r.role = 'claim' OR c.versus IS NOT NULL)
        -- What fits is asked of every number of GPUs; the rest of the number that the claim names.
        AND (
            c.quantity = 'gpus_needed'
            OR n.gpus = CASE WHEN r.role = 'versus' AND c.changed = 'gpu_count' THEN c.changed_to::INTEGER ELSE coalesce(c.gpu_count, 1) END
        )
        AND k.recompute = coalesce(c.checkpointing, k.recompute)
        -- Memory is quoted for one sequence, speed for as many as pay off.
        AND (b.sequences = 1 OR (c.micro_batch IS NULL AND c.kind <> 'memory' AND c.quantity <> 'memory_saving_percent'))
        AND (c.stack IS NULL OR s.way = 'friendly')
        AND (s.way <> 'lean' OR (c.method = 'full' AND c.quantity = 'memory_gb' AND k.recompute = 'full'))
        -- One GPU spreads nothing; ratios compare the usual way for each method.
        AND CASE WHEN n.gpus = 1 THEN d.spread = 'ddp'
            WHEN c.method IN ('full', 'pretrain') THEN d.spread = 'fsdp'
            ELSE d.spread = 'ddp' OR c.versus IS NULL END
)

SELECT
    concat_ws('|', claim_id, role, variation, gpus, spread) AS job,
    claim_id, role, variation, way, gpus,
    model, method, gpu, gpus AS gpu_count, seq_len, lora_rank, micro_batch, checkpointing, stack, optimizer,
    training_precision, fp8, 'alloc' AS memory_metric,
    CASE WHEN gpus > 1 AND stack <> 'te' THEN spread END AS sharding,
    CASE WHEN method = 'qlora' THEN coalesce(quantization, quantized_as) END AS quantization,
    CASE WHEN method = 'qlora' THEN upcast END AS kbit_upcast
FROM _tried;
COMMENT ON MACRO TABLE claim_runs IS
    'The settings that each claim is tried with: fused and plain software, with and without checkpointing, micro-batches of 1 (for speed also 4 and 16), unless the claim names them; and the same for what a ratio is against.';

CREATE OR REPLACE MACRO claim_estimates() AS TABLE
WITH _runs AS MATERIALIZED (SELECT * FROM claim_runs()),

_run_settings AS (SELECT * EXCLUDE (claim_id, role, variation, way, gpus) FROM _runs)

SELECT
    r.claim_id, r.role, r.variation, r.way, r.checkpointing, r.gpus,
    -- Weights, gradients and optimizer are counted; the rest has the model's band.
    greatest(m.memory_gib_low, m.weights_gib + m.adapter_gib + m.gradients_gib + m.optimizer_gib) AS least_gib,
    m.memory_gib AS allocated_gib,
    m.needed_gib,
    m.usable_memory_gib,
    m.fits,
    m.adapter_gib,
    m.activations_gib + m.logits_gib AS activations_gib,
    s.tokens_per_second_per_gpu * r.gpus AS tokens_per_second,
    least(s.tokens_per_second_per_gpu, s.tokens_per_second_per_gpu_low) * r.gpus AS tokens_per_second_low,
    greatest(s.tokens_per_second_per_gpu, s.tokens_per_second_per_gpu_high) * r.gpus AS tokens_per_second_high
FROM _runs AS r
JOIN memory_of('_run_settings') AS m ON m.job = r.job
JOIN speed_of('_run_settings') AS s ON s.job = r.job;
COMMENT ON MACRO TABLE claim_estimates IS
    'What the model says about each of claim_runs: GiB per GPU, whether it fits, tokens per second of all GPUs.';

CREATE OR REPLACE MACRO claim_needs() AS TABLE
SELECT
    claim_id,
    min(least_gib) FILTER (way <> 'lean') AS least_gib,
    min(needed_gib) FILTER (way <> 'lean') AS friendly_gib,
    max(needed_gib) FILTER (way <> 'lean') AS plain_gib,
    min(needed_gib) FILTER (way = 'lean') AS lean_gib,
    any_value(usable_memory_gib) AS usable_gib,
    -- Possible: within the model's error; plainly: with default software and no checkpointing.
    min(gpus) FILTER (least_gib <= usable_memory_gib AND way <> 'lean') AS fewest,
    min(gpus) FILTER (fits AND way = 'plain' AND checkpointing = 'none') AS fewest_plainly,
    -- Adapters are saved in 16 or 32 bits.
    min(adapter_gib) * 1073.741824e0 / 2 AS adapter_mb_low,
    max(adapter_gib) * 1073.741824e0 AS adapter_mb_high,
    min(activations_gib) AS activations_gib_low,
    max(activations_gib) AS activations_gib_high,
    min(tokens_per_second_low) FILTER (least_gib <= usable_memory_gib) AS tokens_per_second_low,
    max(tokens_per_second_high) FILTER (least_gib <= usable_memory_gib) AS tokens_per_second_high
FROM claim_estimates()
WHERE role = 'claim'
GROUP BY claim_id;
COMMENT ON MACRO TABLE claim_needs IS
    'Per claim, over all settings tried: least, friendly, plain and lean memory in GiB per GPU, the fewest GPUs that hold it, the range of speeds among settings that fit.';

CREATE OR REPLACE MACRO claim_ratios() AS TABLE
WITH _estimates AS MATERIALIZED (SELECT * FROM claim_estimates()),

-- Each side is an estimate: the ratio may be off by a factor either way.
_errors (factor) AS (VALUES (1 / claim_rule('ratio_error')), (1), (claim_rule('ratio_error'))),

_pairs AS (
    SELECT
        c.claim_id, c.quantity, r.factor,
        e.allocated_gib / v.allocated_gib * r.factor AS memory_ratio,
        e.tokens_per_second / v.tokens_per_second * r.factor AS speed_ratio,
        speed_ratio * v.gpus / e.gpus AS gpu_speed_ratio
    FROM main.claims AS c
    JOIN _estimates AS e ON e.claim_id = c.claim_id AND e.role = 'claim'
    JOIN _estimates AS v ON v.claim_id = c.claim_id AND v.role = 'versus' AND v.variation = e.variation
    CROSS JOIN _errors AS r
    WHERE c.versus IS NOT NULL
)

SELECT
    claim_id,
    min(ratio) AS low,
    quantile_cont(ratio, 0.5) FILTER (factor = 1) AS middle,
    max(ratio) AS high,
    count(ratio) FILTER (factor = 1) AS pairs
FROM (
    SELECT
        claim_id, factor,
        CASE quantity
            WHEN 'memory_saving_percent' THEN 100 * (1 - memory_ratio)
            WHEN 'speed_ratio' THEN speed_ratio
            WHEN 'time_ratio' THEN 1 / speed_ratio
            WHEN 'time_saving_percent' THEN 100 * (1 - 1 / speed_ratio)
            WHEN 'time_added_percent' THEN 100 * (1 / speed_ratio - 1)
            WHEN 'speed_gain_percent' THEN 100 * (speed_ratio - 1)
            WHEN 'speed_loss_percent' THEN 100 * (1 - speed_ratio)
            WHEN 'gpu_speed_loss_percent' THEN 100 * (1 - gpu_speed_ratio)
            WHEN 'gpu_hours_saving_percent' THEN 100 * (1 - 1 / gpu_speed_ratio)
            ELSE error('catalog/claims.csv: ' || claim_id || ': no such ratio: ' || quantity)
        END AS ratio
    FROM _pairs
)
GROUP BY claim_id;
COMMENT ON MACRO TABLE claim_ratios IS
    'Per claim with versus: the claimed ratio or saving by the model, both sides with the same settings; its median over the settings tried, and its range with the error of both estimates.';

CREATE OR REPLACE MACRO claim_published_runs() AS TABLE
WITH _pairs AS (
    SELECT
        c.claim_id, r.run_id, r.gpu_count AS gpus,
        -- Scaled to the claim's model: memory with its parameters, speed against them.
        r.measured_memory_gib * m.params_total / n.params_total AS memory_gib,
        CASE WHEN r.gpu = c.gpu_id AND r.gpu_count = coalesce(c.gpu_count, 1)
            THEN r.measured_tokens_per_second_per_gpu * r.gpu_count * n.params_total / m.params_total END AS tokens_per_second
    FROM main.claims AS c
    JOIN main.models AS m ON m.model = c.model
    JOIN main.measured_runs AS r ON r.method = c.method
        AND (c.quantization IS NULL OR r.quantization = c.quantization)
        AND NOT coalesce(r.optimizer LIKE '%8bit%' OR r.optimizer LIKE '%inbwd%' OR r.optimizer LIKE 'paged%', FALSE)
        AND coalesce(r.offload, '') = '' AND coalesce(r.out_of_memory, 0) = 0
    JOIN main.models AS n ON n.model = r.model
        AND n.params_total BETWEEN m.params_total / claim_rule('same_size') AND m.params_total * claim_rule('same_size')
    WHERE c.kind <> 'quality' AND c.versus IS NULL AND r.gpu_count >= 1
)

SELECT
    claim_id,
    min(memory_gib) FILTER (gpus = 1) AS memory_gib,
    arg_min(run_id, (memory_gib, run_id)) FILTER (gpus = 1 AND memory_gib IS NOT NULL) AS memory_run,
    min(tokens_per_second) AS tokens_per_second_low,
    max(tokens_per_second) AS tokens_per_second_high,
    arg_min(run_id, (tokens_per_second, run_id)) FILTER (tokens_per_second IS NOT NULL) AS slowest_run,
    arg_max(run_id, (tokens_per_second, run_id)) FILTER (tokens_per_second IS NOT NULL) AS fastest_run
FROM _pairs
GROUP BY claim_id;
COMMENT ON MACRO TABLE claim_published_runs IS
    'Per claim, what published runs of its method and size measured: least memory on one GPU, slowest and fastest on the claimed GPUs, scaled by the ratio of parameters.';
