-- timeless: depends on the catalogue and the model, not on the day
--
-- Each check that applies to a claim, and that does not need the day's prices, gives a finding.
WITH _claims AS MATERIALIZED (
    SELECT * FROM ruled_claims()
),

-- Arithmetic with the claim's own operands.
_terms AS (
    SELECT
        c.*,
        CASE c.formula
            WHEN 'tokens / tokens_per_second' THEN [c.tokens, c.tokens_per_second]
            WHEN 'hours * usd_per_hour' THEN [c.hours, c.usd_per_hour]
            WHEN 'a * storage price' THEN [c.terms::DOUBLE, d.p['storage_usd_per_gb_month']]
            WHEN 'a * context of the model' THEN [c.terms::DOUBLE, m.max_context]
            ELSE string_split(c.terms, ';')::DOUBLE[]
        END AS t
    FROM _claims AS c
    CROSS JOIN default_parameters() AS d
    LEFT JOIN main.models AS m USING (model)
    WHERE c.formula IS NOT NULL
),

_arithmetic AS (
    SELECT
        *,
        CASE formula
            WHEN 'a + b' THEN list_sum(t)
            WHEN 'a * b' THEN t[1] * t[2]
            WHEN 'a - b' THEN t[1] - t[2]
            WHEN 'a / b' THEN t[1] / t[2]
            WHEN 'a * b / c' THEN t[1] * t[2] / t[3]
            WHEN 'least' THEN list_min(t)
            WHEN 'saving of a against b' THEN 100 * (1 - t[1] / t[2])
            WHEN 'tokens / tokens_per_second' THEN t[1] / t[2] / 3600
            WHEN 'hours * usd_per_hour' THEN t[1] * t[2]
            WHEN 'a * storage price' THEN t[1] * t[2]
            WHEN 'a * context of the model' THEN t[1] * t[2]
        END AS result,
        CASE formula
            WHEN 'a * context of the model' THEN value <= result
            ELSE result BETWEEN lowest AND highest
        END AS is_right
    FROM _terms
),

_by_arithmetic AS (
    SELECT
        claim_id,
        CASE WHEN is_right THEN 'holds' ELSE 'arithmetic wrong' END AS verdict,
        result AS should_be,
        to_json({
            'finding': 'arithmetic', 'formula': formula, 'terms': t,
            -- How many tokens the claimed time is right for: the mistake is often a factor of a thousand.
            'right_for_tokens': CASE
                WHEN formula = 'tokens / tokens_per_second' AND NOT is_right
                    THEN value * 3600 * tokens_per_second
            END
        }) AS why,
        CASE formula WHEN 'a * storage price' THEN 'cost_parameters storage_usd_per_gb_month'
            WHEN 'a * context of the model' THEN 'models ' || model
            ELSE 'claims ' || claim_id END AS evidence
    FROM _arithmetic
    WHERE result IS NOT NULL
),

-- Datasheets: the capacity of a board is the sum over its GPUs.
_specs AS (
    UNPIVOT (
        SELECT
            gpu_id AS subject, source, memory_gb, bandwidth_gb_s, fp16_dense_tflops, fp32_tflops, tdp_w,
            year::DOUBLE AS year
        FROM main.gpus
    )
    ON memory_gb, bandwidth_gb_s, fp16_dense_tflops, fp32_tflops, tdp_w, year INTO NAME quantity VALUE fact
    UNION ALL BY NAME
    SELECT model AS subject, source, 'params_billion' AS quantity, params_total / 1e9 AS fact
    FROM main.models
),

_by_datasheet AS (
    SELECT
        c.claim_id,
        CASE WHEN c.quantity = 'year' THEN 1 ELSE coalesce(c.gpu_count, 1) END AS gpus,
        s.fact * gpus AS expected,
        expected BETWEEN c.lowest AND c.highest AS is_right,
        CASE WHEN is_right THEN 'holds' ELSE 'contradicted by measurement' END AS verdict,
        expected AS should_be,
        to_json({'finding': 'datasheet', 'subject': s.subject, 'fact': s.fact, 'gpus': gpus}) AS why,
        CASE WHEN c.gpu_id IS NULL THEN 'models ' ELSE 'gpus ' END
        || s.subject || coalesce(': ' || s.source, '') AS evidence
    FROM _claims AS c
    JOIN _specs AS s ON s.subject = coalesce(c.gpu_id, c.model) AND s.quantity = c.quantity
    WHERE c.kind = 'spec'
),

-- Memory: the floor is the least that fused software or a published run needs; what default software needs
-- without checkpointing is ample; between the two, a claim holds with conditions.
_needs AS MATERIALIZED (SELECT * FROM claim_needs()),

_runs AS MATERIALIZED (SELECT * FROM claim_published_runs()),

_memory AS (
    SELECT
        c.*, n.fused_gib, n.default_gib, n.in_backward_gib, r.memory_gib AS run_gib, r.memory_run,
        least(n.least_gib, coalesce(r.memory_gib, n.least_gib)) AS floor_gib,
        CASE
            WHEN c.high < floor_gib THEN 'too_little'
            WHEN c.quantity = 'memory_used_gb' AND c.value > n.default_gib THEN 'too_much'
            WHEN c.quantity = 'memory_gb' AND c.value > n.default_gib * memory_overstated THEN 'too_much'
            WHEN c.value < n.default_gib THEN 'enough_on_conditions'
            ELSE 'ample'
        END AS finding
    FROM _claims AS c
    JOIN _needs AS n USING (claim_id)
    LEFT JOIN _runs AS r USING (claim_id)
    WHERE c.quantity IN ('memory_gb', 'memory_used_gb') AND c.kind = 'memory'
),

_by_memory AS (
    SELECT
        claim_id,
        CASE finding
            WHEN 'ample' THEN 'holds'
            WHEN 'enough_on_conditions' THEN 'holds with conditions'
            ELSE 'contradicted by measurement'
        END AS verdict,
        CASE WHEN finding IN ('ample', 'too_much') THEN default_gib ELSE fused_gib END AS should_be,
        to_json({
            'finding': finding, 'floor_gib': floor_gib, 'fused_gib': fused_gib, 'default_gib': default_gib,
            'run_gib': run_gib, 'in_backward_gib': in_backward_gib
        }) AS why,
        concat_ws(', ', 'memory_of(claim_runs())', memory_run) AS evidence
    FROM _memory
),

_by_fit AS (
    SELECT
        c.claim_id,
        CASE WHEN c.value >= n.fewest_gpus_default THEN 'holds'
            WHEN c.value >= n.fewest_gpus THEN 'holds with conditions'
            ELSE 'contradicted by measurement' END AS verdict,
        n.fewest_gpus AS should_be,
        to_json({
            'finding': 'gpus_needed', 'model': c.model, 'method': c.method, 'gpu_id': c.gpu_id,
            'usable_gib': n.usable_gib, 'fewest': n.fewest_gpus, 'fewest_default': n.fewest_gpus_default
        }) AS why,
        'memory_of(claim_runs())' AS evidence
    FROM _claims AS c
    JOIN _needs AS n USING (claim_id)
    WHERE c.quantity = 'gpus_needed'
),

-- Sizes that the model computes as a range.
_by_size AS (
    SELECT
        c.claim_id,
        CASE c.quantity WHEN 'adapter_mb' THEN n.adapter_mb_low ELSE n.activations_gib_low END AS low,
        CASE c.quantity WHEN 'adapter_mb' THEN n.adapter_mb_high ELSE n.activations_gib_high END AS most,
        CASE WHEN low BETWEEN c.lowest AND c.highest AND most BETWEEN c.lowest AND c.highest THEN 'holds'
            WHEN most >= c.lowest AND low <= c.highest THEN 'holds with conditions'
            ELSE 'contradicted by measurement' END AS verdict,
        sqrt(low * most) AS should_be,
        to_json({'finding': c.quantity, 'model': c.model, 'low': low, 'high': most}) AS why,
        'memory_of(claim_runs())' AS evidence
    FROM _claims AS c
    JOIN _needs AS n USING (claim_id)
    WHERE c.quantity IN ('adapter_mb', 'activations_gb')
),

-- Speeds, and times and costs converted to the speeds that they imply.
_speed AS (
    SELECT
        c.*, r.slowest_run, r.fastest_run,
        CASE c.quantity
            WHEN 'tokens_per_second' THEN c.value
            WHEN 'hours' THEN c.tokens / c.high / 3600
            WHEN 'usd_for_tokens' THEN c.tokens / (c.high / c.usd_per_hour / c.gpu_count) / 3600
        END AS slow_claim,
        CASE c.quantity
            WHEN 'tokens_per_second' THEN c.high
            WHEN 'hours' THEN c.tokens / c.value / 3600
            WHEN 'usd_for_tokens' THEN c.tokens / (c.value / c.usd_per_hour / c.gpu_count) / 3600
        END AS fast_claim,
        least(n.tokens_per_second_low, r.tokens_per_second_low) AS slowest,
        greatest(n.tokens_per_second_high, r.tokens_per_second_high) AS fastest,
        CASE
            WHEN n.fewest_gpus IS NULL THEN 'does_not_fit'
            WHEN slow_claim > fastest THEN 'too_fast'
            WHEN fast_claim < slowest / slower_than_packed THEN 'too_slow'
            WHEN fast_claim < slowest THEN 'slow'
            ELSE 'possible'
        END AS finding,
        n.usable_gib, n.fused_gib
    FROM _claims AS c
    JOIN _needs AS n USING (claim_id)
    LEFT JOIN _runs AS r USING (claim_id)
    WHERE c.versus IS NULL
        AND (
            c.quantity = 'tokens_per_second'
            OR (c.quantity IN ('hours', 'usd_for_tokens') AND c.tokens IS NOT NULL AND c.formula IS NULL)
        )
        AND (n.fewest_gpus IS NULL OR n.tokens_per_second_high IS NOT NULL)
),

_by_speed AS (
    SELECT
        claim_id,
        CASE finding
            WHEN 'possible' THEN 'holds'
            WHEN 'slow' THEN 'holds with conditions'
            ELSE 'contradicted by measurement'
        END AS verdict,
        -- The speed nearest to the claim that the evidence allows.
        CASE finding
            WHEN 'too_fast' THEN fastest
            WHEN 'possible' THEN greatest(least(slow_claim, fastest), slowest)
            ELSE slowest
        END AS right_speed,
        CASE quantity
            WHEN 'tokens_per_second' THEN right_speed
            WHEN 'hours' THEN tokens / right_speed / 3600
            WHEN 'usd_for_tokens' THEN tokens / right_speed / 3600 * usd_per_hour * gpu_count
        END AS should_be,
        to_json({
            'finding': finding, 'model': model, 'method': method, 'gpu_count': gpu_count, 'gpu_id': gpu_id,
            'needed_gib': fused_gib, 'usable_gib': usable_gib, 'slowest': slowest, 'fastest': fastest,
            'claimed': CASE WHEN quantity <> 'tokens_per_second' THEN fast_claim END
        }) AS why,
        concat_ws(', ', 'speed_of(claim_runs())', slowest_run, fastest_run) AS evidence
    FROM _speed
),

-- Ratios and savings of one setting compared with another.
_by_ratio AS (
    SELECT
        c.claim_id,
        CASE WHEN r.middle BETWEEN c.lowest AND c.highest THEN 'holds'
            WHEN r.high >= c.lowest AND r.low <= c.highest THEN 'holds with conditions'
            ELSE 'contradicted by measurement' END AS verdict,
        r.middle AS should_be,
        to_json({
            'finding': 'ratio', 'model': c.model, 'method': c.method, 'gpu_id': c.gpu_id, 'versus': c.versus,
            'low': r.low, 'high': r.high, 'pairs': r.pairs
        }) AS why,
        'claim_ratios()' AS evidence
    FROM _claims AS c
    JOIN claim_ratios() AS r USING (claim_id)
    WHERE r.middle IS NOT NULL
)

SELECT checked_by, claim_id, verdict, should_be, why, evidence
FROM (
    SELECT 'arithmetic' AS checked_by, * FROM _by_arithmetic
    UNION ALL BY NAME
    SELECT 'datasheet' AS checked_by, * FROM _by_datasheet
    UNION ALL BY NAME
    SELECT 'memory' AS checked_by, * FROM _by_memory
    UNION ALL BY NAME
    SELECT 'fit' AS checked_by, * FROM _by_fit
    UNION ALL BY NAME
    SELECT 'size' AS checked_by, * FROM _by_size
    UNION ALL BY NAME
    SELECT 'speed' AS checked_by, * FROM _by_speed
    UNION ALL BY NAME
    SELECT 'ratio' AS checked_by, * FROM _by_ratio
)
ORDER BY claim_id, checked_by
