-- timeless: depends on the catalogue and the model, not on the day
--
-- Each check that applies to a claim and needs no price of the day gives a finding.
WITH _claims AS MATERIALIZED (
    SELECT * FROM ruled_claims()
),

-- Arithmetic on the claim's own operands.
_terms AS (
    SELECT claim_id, list_transform(string_split(terms, ';'), lambda t: t::DOUBLE) AS t
    FROM _claims
),

_storage AS (
    SELECT value AS usd_per_gb_month
    FROM main.cost_parameters
    WHERE name = 'storage_usd_per_gb_month' AND applies_to = 'default'
),

_arithmetic AS (
    SELECT
        c.*,
        CASE c.formula
            WHEN 'a + b' THEN list_sum(t)
            WHEN 'a - b' THEN t[1] - t[2]
            WHEN 'a * b' THEN t[1] * t[2]
            WHEN 'a / b' THEN t[1] / t[2]
            WHEN 'a * b / c' THEN t[1] * t[2] / t[3]
            WHEN 'least' THEN list_min(t)
            WHEN 'saving of a against b' THEN 100 * (1 - t[1] / t[2])
            WHEN 'tokens / tokens_per_second' THEN c.tokens / c.tokens_per_second / 3600
            WHEN 'hours * usd_per_hour' THEN c.hours * c.usd_per_hour
            WHEN 'a * storage price' THEN t[1] * s.usd_per_gb_month
            WHEN 'a * context of the model' THEN t[1] * m.max_context
        END AS result,
        CASE c.formula
            WHEN 'a + b' THEN replace(c.terms, ';', ' + ')
            WHEN 'a - b' THEN replace(c.terms, ';', ' - ')
            WHEN 'a * b' THEN replace(c.terms, ';', ' x ')
            WHEN 'a / b' THEN replace(c.terms, ';', ' / ')
            WHEN 'a * b / c' THEN
                number_text(t[1]) || ' x ' || number_text(t[2]) || ' / ' || number_text(t[3])
            WHEN 'least' THEN 'the least of ' || replace(c.terms, ';', ', ')
            WHEN 'saving of a against b' THEN '1 - ' || replace(c.terms, ';', ' / ')
            WHEN 'tokens / tokens_per_second' THEN
                number_text(c.tokens) || ' tokens at ' || number_text(c.tokens_per_second) || ' per second'
            WHEN 'hours * usd_per_hour' THEN number_text(c.hours) || ' h x $' || c.usd_per_hour || '/h'
            WHEN 'a * storage price' THEN c.terms || ' GB x $' || s.usd_per_gb_month || ' per GB and month'
            WHEN 'a * context of the model' THEN
                c.terms || ' samples of at most ' || number_text(m.max_context) || ' tokens'
        END AS calculation,
        CASE c.formula
            WHEN 'a * context of the model' THEN c.value <= result
            ELSE result BETWEEN c.lowest AND c.highest
        END AS is_right
    FROM _claims AS c
    JOIN _terms AS t USING (claim_id)
    LEFT JOIN _storage AS s ON TRUE
    LEFT JOIN main.models AS m USING (model)
    WHERE c.formula IS NOT NULL
),

_by_arithmetic AS (
    SELECT
        claim_id,
        CASE WHEN is_right THEN 'holds' ELSE 'arithmetic wrong' END AS verdict,
        result AS should_be,
        calculation || ' = ' || number_text(result) || ' ' || unit
        || CASE WHEN is_right THEN '.' ELSE ', not ' || range_text(value, high)
            -- The mistake is often a factor of a thousand: say what the claimed time is right for.
            || CASE WHEN formula = 'tokens / tokens_per_second'
                THEN '; ' || number_text(value) || ' hours are right for '
                    || number_text(value * 3600 * tokens_per_second) || ' tokens'
                ELSE '' END
            || '.' END AS why,
        CASE formula WHEN 'a * storage price' THEN 'cost_parameters storage_usd_per_gb_month'
            WHEN 'a * context of the model' THEN 'models ' || model
            ELSE 'the document''s own operands' END AS evidence
    FROM _arithmetic
    WHERE result IS NOT NULL
),

-- Datasheets. A board's capacities are its GPUs' together.
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
        CASE WHEN c.gpu_id IS NULL THEN 'The configuration of ' ELSE 'The datasheet of ' END
        || s.subject || ' says '
        || CASE WHEN c.quantity = 'year' THEN s.fact::INTEGER::VARCHAR ELSE number_text(s.fact) END
        || CASE
            WHEN gpus > 1 THEN ' for each of ' || gpus || ' GPUs, ' || number_text(expected) || ' together'
            ELSE ''
        END
        || CASE
            WHEN is_right THEN ''
            WHEN c.quantity = 'year' THEN ', not ' || c.value::INTEGER
            ELSE ', not ' || number_text(c.value)
        END
        || '.' AS why,
        CASE WHEN c.gpu_id IS NULL THEN 'models ' ELSE 'gpus ' END
        || s.subject || coalesce(': ' || s.source, '') AS evidence
    FROM _claims AS c
    JOIN _specs AS s ON s.subject = coalesce(c.gpu_id, c.model) AND s.quantity = c.quantity
    WHERE c.kind = 'spec'
),

-- Memory: the least that fused software or a published run takes is a floor; what default software without
-- checkpointing takes is ample; in between, the claim holds with conditions.
_needs AS MATERIALIZED (SELECT * FROM claim_needs()),

_runs AS MATERIALIZED (SELECT * FROM claim_published_runs()),

_memory AS (
    SELECT
        c.*, n.fused_gib, n.default_gib, n.in_backward_gib, r.memory_gib AS run_gib, r.memory_run,
        least(n.least_gib, coalesce(r.memory_gib, n.least_gib)) AS floor_gib,
        CASE
            WHEN c.high < floor_gib THEN 'too little'
            WHEN c.quantity = 'memory_used_gb' AND c.value > n.default_gib THEN 'too much'
            WHEN c.quantity = 'memory_gb' AND c.value > n.default_gib * memory_overstated THEN 'too much'
            WHEN c.value < n.default_gib THEN 'enough on conditions'
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
            WHEN 'enough on conditions' THEN 'holds with conditions'
            ELSE 'contradicted by measurement'
        END AS verdict,
        CASE WHEN finding IN ('ample', 'too much') THEN default_gib ELSE fused_gib END AS should_be,
        CASE finding
            WHEN 'too little' THEN
                'It takes at least ' || number_text(floor_gib) || ' GB, ' || number_text(fused_gib)
                || ' to be safe, with an ordinary AdamW, fused kernels and full checkpointing'
            WHEN 'too much' THEN
                'Even default software without checkpointing takes ' || number_text(default_gib) || ' GB'
            WHEN 'enough on conditions' THEN
                'It takes ' || number_text(floor_gib) || ' GB at least and ' || number_text(fused_gib)
                || ' to be safe with fused kernels and full checkpointing, but ' || number_text(default_gib)
                || ' on default software'
            ELSE 'Default software without checkpointing takes ' || number_text(default_gib) || ' GB'
        END
        || CASE
            WHEN memory_run IS NULL THEN ''
            ELSE '; the published run with the least took ' || number_text(run_gib)
        END
        || CASE
            WHEN in_backward_gib IS NULL THEN ''
            ELSE '; an 8-bit optimizer that steps during the backward pass would take '
                || number_text(in_backward_gib)
        END
        || '.' AS why,
        'memory_of(claim_runs())' || coalesce(', run ' || memory_run, '') AS evidence
    FROM _memory
),

_by_fit AS (
    SELECT
        c.claim_id,
        CASE WHEN c.value >= n.fewest_gpus_default THEN 'holds'
            WHEN c.value >= n.fewest_gpus THEN 'holds with conditions'
            ELSE 'contradicted by measurement' END AS verdict,
        n.fewest_gpus AS should_be,
        c.model || ' ' || c.method
        || CASE verdict
            WHEN 'contradicted by measurement' THEN
                ' does not fit ' || number_text(c.value) || 'x ' || c.gpu_id
                || ' of ' || number_text(n.usable_gib) || ' usable GiB'
            ELSE ' fits ' || number_text(c.value) || 'x ' || c.gpu_id
        END
        || CASE verdict
            WHEN 'holds' THEN ', even with default software and no checkpointing'
            WHEN 'holds with conditions' THEN
                ', with checkpointing, fused kernels or sharding, and perhaps tightly'
            ELSE ''
        END
        || CASE WHEN n.fewest_gpus IS NULL THEN '; no number up to 16 does'
            ELSE '; ' || number_text(n.fewest_gpus) || ' is the fewest' END || '.' AS why,
        'memory_of(claim_runs())' AS evidence
    FROM _claims AS c
    JOIN _needs AS n USING (claim_id)
    WHERE c.quantity = 'gpus_needed'
),

-- Sizes that the model works out as a range.
_by_size AS (
    SELECT
        c.claim_id,
        CASE c.quantity WHEN 'adapter_mb' THEN n.adapter_mb_low ELSE n.activations_gib_low END AS low,
        CASE c.quantity WHEN 'adapter_mb' THEN n.adapter_mb_high ELSE n.activations_gib_high END AS most,
        CASE WHEN low BETWEEN c.lowest AND c.highest AND most BETWEEN c.lowest AND c.highest THEN 'holds'
            WHEN most >= c.lowest AND low <= c.highest THEN 'holds with conditions'
            ELSE 'contradicted by measurement' END AS verdict,
        sqrt(low * most) AS should_be,
        'The shapes of ' || c.model || ' give ' || range_text(low, most) || ' ' || c.unit
        || CASE c.quantity
            WHEN 'adapter_mb' THEN ', in 16 or 32 bits'
            ELSE ', with and without checkpointing and fused kernels'
        END
        || '.' AS why,
        'memory_of(claim_runs())' AS evidence
    FROM _claims AS c
    JOIN _needs AS n USING (claim_id)
    WHERE c.quantity IN ('adapter_mb', 'activations_gb')
),

-- Speed, and times and costs as the speed that they imply.
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
            WHEN n.fewest_gpus IS NULL THEN 'does not fit'
            WHEN slow_claim > fastest THEN 'too fast'
            WHEN fast_claim < slowest / slower_than_packed THEN 'too slow'
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
        -- The nearest number that the evidence allows.
        CASE finding
            WHEN 'too fast' THEN fastest
            WHEN 'possible' THEN greatest(least(slow_claim, fastest), slowest)
            ELSE slowest
        END AS right_speed,
        CASE quantity
            WHEN 'tokens_per_second' THEN right_speed
            WHEN 'hours' THEN tokens / right_speed / 3600
            WHEN 'usd_for_tokens' THEN tokens / right_speed / 3600 * usd_per_hour * gpu_count
        END AS should_be,
        CASE
            WHEN finding = 'does not fit' THEN
                model || ' ' || method || ' does not fit ' || gpu_count || 'x ' || gpu_id || ': it takes '
                || number_text(fused_gib) || ' GiB per GPU, ' || number_text(usable_gib) || ' are usable.'
            ELSE
                CASE
                    WHEN quantity = 'tokens_per_second' THEN ''
                    ELSE 'That is ' || number_text(fast_claim) || ' tokens/s; '
                END
                || model || ' ' || method || ' on ' || gpu_count || 'x ' || gpu_id
                || ' runs at ' || range_text(slowest, fastest) || ' tokens/s'
                || CASE
                    WHEN quantity <> 'tokens_per_second' THEN
                        ', which takes ' || number_text(tokens / fastest / 3600) || ' hours at best'
                    WHEN finding = 'slow' THEN ', slower only with short or padded sequences'
                    ELSE ''
                END
                || CASE
                    WHEN finding = 'too fast' AND quantity = 'hours' THEN
                        '; in the claimed time it sees ' || number_text(value * 3600 * fastest)
                        || ' tokens at most'
                    ELSE ''
                END
                || '.'
        END AS why,
        'speed_of(claim_runs())'
        || coalesce(', runs ' || slowest_run || ' and ' || fastest_run, '') AS evidence
    FROM _speed
),

-- Ratios and savings of one setting against another.
_by_ratio AS (
    SELECT
        c.claim_id,
        CASE WHEN r.middle BETWEEN c.lowest AND c.highest THEN 'holds'
            WHEN r.high >= c.lowest AND r.low <= c.highest THEN 'holds with conditions'
            ELSE 'contradicted by measurement' END AS verdict,
        r.middle AS should_be,
        'The calibrated model gives ' || number_text(r.middle) || ' ' || c.unit
        || ', ' || range_text(r.low, r.high)
        || ' over ' || r.pairs || ' pairs of settings and their error, for ' || c.model || ' ' || c.method
        || ' on ' || coalesce(c.gpu_id, 'any GPU') || ' against ' || c.versus || '.' AS why,
        'claim_ratios()' AS evidence
    FROM _claims AS c
    JOIN claim_ratios() AS r USING (claim_id)
    WHERE r.middle IS NOT NULL
)

SELECT 'arithmetic' AS checked_by, claim_id, verdict, should_be, why, evidence
FROM _by_arithmetic
UNION ALL BY NAME
SELECT 'datasheet' AS checked_by, claim_id, verdict, should_be, why, evidence
FROM _by_datasheet
UNION ALL BY NAME
SELECT 'memory' AS checked_by, claim_id, verdict, should_be, why, evidence
FROM _by_memory
UNION ALL BY NAME
SELECT 'fit' AS checked_by, claim_id, verdict, should_be, why, evidence
FROM _by_fit
UNION ALL BY NAME
SELECT 'size' AS checked_by, claim_id, verdict, should_be, why, evidence
FROM _by_size
UNION ALL BY NAME
SELECT 'speed' AS checked_by, claim_id, verdict, should_be, why, evidence
FROM _by_speed
UNION ALL BY NAME
SELECT 'ratio' AS checked_by, claim_id, verdict, should_be, why, evidence
FROM _by_ratio
ORDER BY claim_id, checked_by
