-- The model's estimates and the published runs for the settings that claims name.

CREATE OR REPLACE MACRO claim_rule(rule) AS (SELECT r.value FROM main.claim_rules AS r WHERE r.name = rule);
COMMENT ON FUNCTION claim_rule IS 'The tolerance that main.claim_rules gives for a rule.';

-- A claim rarely names every setting; the others are tried at their usual values. Software is "fused" (fused
-- kernels and fused AdamW: the least memory with an ordinary optimizer), "default" (what a framework does
-- when nothing is set) or "in_backward" (an 8-bit optimizer that steps during the backward pass). A claim
-- would have to name in_backward to rely on it, so the memory of in_backward is only reported.
CREATE OR REPLACE MACRO claim_runs() AS TABLE
WITH _claims AS (
    SELECT
        claim_id, quantity, kind, versus, seq_len, lora_rank, gpu_count, checkpointing, stack, micro_batch,
        quantization, model, method, training_precision,
        split_part(versus, '=', 1) AS changed,
        split_part(versus, '=', 2) AS changed_to,
        -- Memory hardly depends on the card: a claim that names no card is tried with a data-centre card.
        coalesce(gpu_id, 'a100-sxm-80gb') AS gpu
    FROM main.claims
    WHERE model IS NOT NULL AND method IS NOT NULL AND kind <> 'quality'
),

_roles (role) AS (VALUES ('claim'), ('versus')),

_sides AS (
    SELECT c.*, r.role, CASE r.role WHEN 'versus' THEN c.changed END AS differs_in
    FROM _claims AS c
    CROSS JOIN _roles AS r
    WHERE r.role = 'claim' OR c.versus IS NOT NULL
),

_counts (gpus) AS (VALUES (1), (2), (4), (8), (16)),

_software (software, stack, optimizer, quantized_as, upcast) AS (
    VALUES
    ('fused', 'liger', 'adamw_fused', 'nf4dq', 0),
    ('default', 'hf', 'adamw', 'nf4', 1),
    ('in_backward', 'liger', 'adamw8bit_inbwd', NULL, NULL)
),

_checkpointings (recompute) AS (VALUES ('none'), ('full')),

_batches (sequences) AS (VALUES (1), (4), (16)),

_spreads (spread) AS (VALUES ('ddp'), ('fsdp')),

_tried AS (
    SELECT
        c.* EXCLUDE (micro_batch, gpu, method, checkpointing, stack, training_precision),
        n.gpus, s.software, s.optimizer, s.quantized_as, s.upcast, d.spread,
        coalesce(c.micro_batch, b.sequences) AS micro_batch,
        CASE c.differs_in WHEN 'gpu_id' THEN c.changed_to ELSE c.gpu END AS gpu,
        CASE c.differs_in WHEN 'method' THEN c.changed_to ELSE c.method END AS method,
        CASE c.differs_in WHEN 'checkpointing' THEN c.changed_to ELSE k.recompute END AS checkpointing,
        CASE c.differs_in WHEN 'stack' THEN c.changed_to ELSE coalesce(c.stack, s.stack) END AS stack,
        -- If a claim leaves the precision open, the least memory is meant: bf16 without fp32 masters.
        CASE c.differs_in WHEN 'training_precision' THEN c.changed_to ELSE
                coalesce(c.training_precision, CASE c.method WHEN 'full' THEN 'bf16' END)
        END AS training_precision,
        CASE
            WHEN c.differs_in = 'fp8' THEN c.changed_to::DOUBLE
            WHEN c.changed = 'fp8' THEN 1e0
        END AS fp8,
        -- The settings tried, except the one compared, as a key that joins the two sides of a ratio.
        concat_ws(' ', s.software, k.recompute, b.sequences) AS variation
    FROM _sides AS c
    CROSS JOIN _counts AS n
    CROSS JOIN _software AS s
    CROSS JOIN _checkpointings AS k
    CROSS JOIN _batches AS b
    CROSS JOIN _spreads AS d
    -- Claims about how many GPUs are needed are tried on every number; others, on the claimed number or 1.
    WHERE (
        c.quantity = 'gpus_needed'
        OR n.gpus = CASE c.differs_in
            WHEN 'gpu_count' THEN c.changed_to::INTEGER
            ELSE coalesce(c.gpu_count, 1)
        END
    )
    AND k.recompute = coalesce(c.checkpointing, k.recompute)
    -- Guides quote memory for one sequence, and speed for the fastest micro-batch.
    AND (
        b.sequences = 1
        OR (c.micro_batch IS NULL AND c.kind <> 'memory' AND c.quantity <> 'memory_saving_percent')
    )
    AND (c.stack IS NULL OR s.software = 'fused')
    AND (
        s.software <> 'in_backward'
        OR (c.method = 'full' AND c.quantity = 'memory_gb' AND k.recompute = 'full')
    )
    -- A single GPU needs no sharding; for ratios, each method is tried only with its usual sharding.
    AND CASE
        WHEN n.gpus = 1 THEN d.spread = 'ddp'
        WHEN c.method IN ('full', 'pretrain') THEN d.spread = 'fsdp'
        ELSE d.spread = 'ddp' OR c.versus IS NULL
    END
)

SELECT
    concat_ws('|', claim_id, role, variation, gpus, spread) AS job,
    claim_id, role, variation, software, gpus,
    model, method, gpu, gpus AS gpu_count, seq_len, lora_rank, micro_batch, checkpointing, stack, optimizer,
    training_precision, fp8, 'alloc' AS memory_metric,
    CASE WHEN gpus > 1 AND stack <> 'te' THEN spread END AS sharding,
    CASE WHEN method = 'qlora' THEN coalesce(quantization, quantized_as) END AS quantization,
    CASE WHEN method = 'qlora' THEN upcast END AS kbit_upcast
FROM _tried;
COMMENT ON MACRO TABLE claim_runs IS
    'The settings tried for each claim and, if the claim is a ratio, for the other side of the ratio. Settings that the claim leaves open are tried with fused and with default software, with and without checkpointing, and with micro-batches of 1 sequence (for speed, also of 4 and 16).';

CREATE OR REPLACE MACRO claim_estimates() AS TABLE
WITH _runs AS MATERIALIZED (SELECT * FROM claim_runs()),

_run_settings AS (SELECT * EXCLUDE (claim_id, role, variation, software, gpus) FROM _runs)

SELECT
    r.claim_id, r.role, r.variation, r.software, r.checkpointing, r.gpus,
    -- Weights, adapters, gradients and optimizer state are counted, not estimated: they are a lower limit.
    greatest(m.memory_gib_low, m.weights_gib + m.adapter_gib + m.gradients_gib + m.optimizer_gib)
        AS least_gib,
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
JOIN memory_of('_run_settings', with_own := FALSE) AS m ON m.job = r.job
JOIN speed_of('_run_settings', with_own := FALSE) AS s ON s.job = r.job;
COMMENT ON MACRO TABLE claim_estimates IS
    'The model''s estimates for each row of claim_runs: memory in GiB per GPU, whether the run fits, and tokens per second on all GPUs together.';

CREATE OR REPLACE MACRO claim_needs() AS TABLE
SELECT
    claim_id,
    min(least_gib) FILTER (software <> 'in_backward') AS least_gib,
    min(needed_gib) FILTER (software <> 'in_backward') AS fused_gib,
    max(needed_gib) FILTER (software <> 'in_backward') AS default_gib,
    min(needed_gib) FILTER (software = 'in_backward') AS in_backward_gib,
    any_value(usable_memory_gib) AS usable_gib,
    -- The fewest GPUs within the model's error, and the fewest with default software and no checkpointing.
    min(gpus) FILTER (least_gib <= usable_memory_gib AND software <> 'in_backward') AS fewest_gpus,
    min(gpus) FILTER (fits AND software = 'default' AND checkpointing = 'none') AS fewest_gpus_default,
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
    'For each claim, over all settings tried: memory in GiB per GPU (the least possible, and what fused, default and in-backward software need), the fewest GPUs on which the claimed run fits, and the range of speeds among the settings that fit.';

CREATE OR REPLACE MACRO claim_ratios() AS TABLE
WITH _estimates AS MATERIALIZED (SELECT * FROM claim_estimates()),

-- Both sides are estimates, so the ratio may be off by ratio_error in either direction.
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
    'For each claim with a value in versus, the ratio or saving that the model estimates if all other settings are the same on both sides: the median over the settings tried, and a range that allows for the errors of both estimates.';

CREATE OR REPLACE MACRO claim_published_runs() AS TABLE
WITH _pairs AS (
    SELECT
        c.claim_id, r.run_id, r.gpu_count AS gpus,
        -- Scaled to the claim's model: memory in proportion to the parameters, speed in inverse proportion.
        r.measured_memory_gib * m.params_total / n.params_total AS memory_gib,
        CASE
            WHEN r.gpu = c.gpu_id AND r.gpu_count = coalesce(c.gpu_count, 1)
                THEN r.measured_tokens_per_second_per_gpu * r.gpu_count * n.params_total / m.params_total
        END AS tokens_per_second
    FROM main.claims AS c
    JOIN main.models AS m ON m.model = c.model
    JOIN main.measured_runs AS r ON r.method = c.method
        AND (c.quantization IS NULL OR r.quantization = c.quantization)
        AND NOT regexp_matches(coalesce(r.optimizer, ''), '8bit|inbwd|^paged')
        AND coalesce(r.offload, '') = '' AND coalesce(r.out_of_memory, 0) = 0
    JOIN main.models AS n ON n.model = r.model
        AND n.params_total
        BETWEEN m.params_total / claim_rule('same_size') AND m.params_total * claim_rule('same_size')
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
    'For each claim, measurements from published runs that use the same method and a model of about the same size, scaled by the ratio of the parameter counts: the least memory on one GPU, and the lowest and highest speeds on the claimed GPUs.';

CREATE OR REPLACE MACRO ruled_claims() AS TABLE
SELECT
    *, claim_rule('price_factor') AS price_factor, claim_rule('price_days') AS price_days,
    claim_rule('memory_overstated') AS memory_overstated,
    claim_rule('slower_than_packed') AS slower_than_packed,
    CASE WHEN or_more THEN 'inf'::DOUBLE ELSE coalesce(value_high, value) END AS high,
    coalesce(tolerance, 0) AS slack,
    value - abs(value) * slack AS lowest,
    -- Infinity times a tolerance of 0 would be NaN.
    CASE WHEN isinf(high) THEN high ELSE high + abs(high) * slack END AS highest
FROM main.claims;
COMMENT ON MACRO TABLE ruled_claims IS
    'The rows of main.claims with the tolerances from main.claim_rules, and with the range (lowest to highest) within which a recomputed number agrees with the claim.';
