-- The constraint to relax when a job has no answer.

CREATE OR REPLACE MACRO least_relaxed_seq_len() AS 512;
COMMENT ON FUNCTION least_relaxed_seq_len IS
    'The length, in tokens, down to which sequences are halved in search of an answer for a job without one. Assumed.';

CREATE OR REPLACE MACRO relaxed_jobs(jobs) AS TABLE
WITH _relaxing AS (
    SELECT *, job AS of_job
    FROM query_table(jobs)
)

SELECT *, NULL::VARCHAR AS relaxed
FROM _relaxing
UNION ALL
SELECT
    * REPLACE (concat_ws(chr(31), job, 'micro_batch') AS job, NULL::INTEGER AS micro_batch),
    'micro_batch' AS relaxed
FROM _relaxing
WHERE micro_batch IS NOT NULL
UNION ALL
SELECT
    * EXCLUDE (shorter) REPLACE (concat_ws(chr(31), job, 'seq_len', shorter) AS job, shorter AS seq_len),
    'seq_len' AS relaxed
FROM (SELECT *, unnest([seq_len // 2, seq_len // 4, seq_len // 8, seq_len // 16]) AS shorter FROM _relaxing)
WHERE shorter >= least_relaxed_seq_len();
COMMENT ON MACRO TABLE relaxed_jobs IS
    'Each job, and variants of the job with one of the planner''s settings relaxed: any micro_batch, or shorter sequences (down to least_relaxed_seq_len). of_job: the job; job: the name of the variant; relaxed: the setting that the variant relaxes, null for the job itself. jobs: rows of completed_jobs.';

CREATE OR REPLACE MACRO nearest_answers(jobs, plans) AS TABLE
WITH _relaxed AS (
    FROM relaxed_jobs(jobs)
),

_open_jobs AS (
    SELECT * REPLACE ('all' AS opened) FROM _relaxed
),

-- Sequences are shortened only if the job does not fit on any of the wanted GPUs.
_fitting AS (
    SELECT DISTINCT j.job AS of_job
    FROM query_table(jobs) AS j
    JOIN query_table(plans) AS p ON p.job = j.job
    WHERE p.verdict <> 'does_not_fit' AND p.fit_probability >= j.min_fit_probability
        AND p.gpu_count BETWEEN coalesce(j.min_gpus, 1) AND j.max_gpus
        AND is_wanted(p.gpu_id, j.constraints.gpu_id)
),

_open_candidates AS MATERIALIZED (
    FROM job_candidates('_open_jobs', plans)
),

_open_costs AS MATERIALIZED (
    FROM candidate_costs('_open_candidates', ['middle'])
),

_open_answers AS (
    SELECT
        j.of_job AS job, c.offer, c.gpu_id, c.gpu_count, c.node_count, c.price_kind, c.term_days,
        c.total_usd, c.hours,
        c.gpu, c.provider, c.source, p.fit_probability, r.country, r.continent,
        list_filter(list_concat(
            name_misses('gpu', c.gpu_id, j.constraints.gpu_id),
            [
                CASE WHEN c.gpu_count > j.max_gpus THEN miss('gpus', c.gpu_count, c.gpu_count) END,
                CASE WHEN c.gpu_count < j.min_gpus THEN miss('min_gpus', c.gpu_count, -c.gpu_count) END,
                CASE WHEN c.node_count > j.max_nodes
                        THEN miss('max_nodes', c.node_count, c.node_count)
                END,
                -- Rounded so that the answer meets the value; if values tie, the cheapest answer is used.
                CASE WHEN p.fit_probability < j.min_fit_probability THEN miss(
                        'min_fit_probability', format('{:g}', floor(1000 * p.fit_probability) / 1000),
                        -floor(1000 * p.fit_probability)
                    )
                END,
                CASE WHEN NOT list_contains(j.evidences, p.evidence)
                        THEN miss('evidence', p.evidence, len(evidences_from(p.evidence)))
                END,
                CASE WHEN j.deadline_is_strict AND c.hours > j.max_hours THEN miss(
                        'max_hours', format('{:.2f}', ceil(100 * c.hours) / 100), ceil(100 * c.hours)
                    )
                END,
                CASE WHEN c.total_usd > j.max_usd THEN miss(
                        'max_usd', format('{:.2f}', ceil(100 * c.total_usd::DOUBLE) / 100), c.total_usd
                    )
                END
            ],
            -- Quotes and own machines are exempt from these constraints.
            CASE WHEN c.asked IS NULL THEN rental_misses(r, j) END,
            [CASE j.relaxed
                WHEN 'micro_batch' THEN miss('micro_batch', p.micro_batch)
                WHEN 'seq_len' THEN miss('seq_len', p.seq_len, -p.seq_len)
            END]
        ), lambda each: each IS NOT NULL) AS misses,
        list_transform(misses, lambda each: each.setting) AS missed
    FROM eligible_costs('_open_costs', '_open_jobs') AS c
    JOIN _relaxed AS j ON j.job = c.job
    JOIN query_table(plans) AS p
        ON p.job = c.job AND p.gpu_id = c.gpu_id AND p.gpu_count = c.gpu_count AND p.node_count = c.node_count
    LEFT JOIN main.rentals AS r ON r.rowid = c.offer
    LEFT JOIN _fitting AS f ON f.of_job = j.of_job
    WHERE j.relaxed IS DISTINCT FROM 'seq_len' OR f.of_job IS NULL
),

_fewest_missed AS (
    SELECT *
    FROM (
        SELECT *, min(len(missed)) OVER (PARTITION BY job) AS fewest
        FROM _open_answers
        -- No constraint can name an unknown place.
        WHERE NOT (country IS NULL AND list_has_any(missed, ['country', 'exclude_country']))
            AND NOT (continent IS NULL AND list_contains(missed, 'continent'))
    )
    WHERE fewest > 0 AND len(missed) = fewest
    QUALIFY row_number() OVER (
        PARTITION BY job, missed
        -- Names have no distance, so the cheapest answer is taken.
        ORDER BY misses[1].distance, total_usd, hours, gpu_count, offer
    ) = 1
),

_missed_values AS (
    SELECT
        n.*,
        list_transform(missed, lambda name: CASE name
            WHEN 'gpus' THEN j.max_gpus::VARCHAR ELSE coalesce(j.asked[name], d.p[name], 'false')
        END) AS asked,
        list_transform(misses, lambda each: each.nearest) AS nearest
    FROM _fewest_missed AS n
    JOIN query_table(jobs) AS j USING (job)
    CROSS JOIN setting_defaults() AS d
)

SELECT
    m.job, m.missed AS constraints, m.asked, m.nearest,
    m.total_usd, m.hours, m.fit_probability, m.gpu_id, m.gpu, m.gpu_count, m.node_count, m.provider,
    m.source, m.price_kind, NULL AS lacking_gib
FROM _missed_values AS m
UNION ALL
SELECT
    p.job, ['memory'], NULL, NULL, NULL, NULL, NULL,
    arg_max(p.gpu_id, p.memory_margin_gib) FILTER (p.memory_margin_gib < 0), NULL,
    arg_max(p.gpu_count, p.memory_margin_gib) FILTER (p.memory_margin_gib < 0), NULL, NULL, NULL, NULL,
    -max(p.memory_margin_gib) FILTER (p.memory_margin_gib < 0)
FROM query_table(plans) AS p
SEMI JOIN query_table(jobs) USING (job)
GROUP BY p.job
HAVING bool_and(p.verdict = 'does_not_fit')
ORDER BY job, total_usd, constraints;
COMMENT ON MACRO TABLE nearest_answers IS
    'For each job without an answer, the constraints that could be relaxed: single constraints, each with the nearest value that gives an answer while all other constraints stay the same, or, if no single constraint helps, the smallest sets of constraints that do. One row per job and set: job, constraints (columns of jobs; memory if the model does not fit on any GPU), asked and nearest (lists of strings with one value per constraint), and the resulting answer: total_usd, hours, fit_probability, gpu_id, gpu, gpu_count, node_count, provider, source and price_kind. For memory, the row gives the gpu_id and gpu_count that fall short by the fewest GiB per GPU, and lacking_gib, the shortfall in GiB. asked contains the values as written in the job. For constraints on numbers, nearest contains the nearest value; for constraints on names, and for micro_batch, the value of the cheapest answer. Sequences are halved (seq_len) only if no requested GPU has enough memory; recipe settings other than seq_len and micro_batch are left unchanged. The answers come from the given plans. Jobs with an answer have no row. jobs: rows of completed_jobs; plans: the rows of plans for relaxed_jobs, up to the largest number of GPUs to consider.';

CREATE OR REPLACE MACRO nearest_for(jobs) AS TABLE
WITH _nearest_jobs AS (
    SELECT * FROM completed_jobs(jobs)
),

_nearest_settings AS (
    SELECT j.* REPLACE (d.max_gpus AS max_gpus)
    FROM relaxed_jobs('_nearest_jobs') AS j
    CROSS JOIN plan_defaults() AS d
),

_nearest_plans AS (
    SELECT * FROM job_plans('_nearest_settings')
)

FROM nearest_answers('_nearest_jobs', '_nearest_plans');
COMMENT ON MACRO TABLE nearest_for IS
    'nearest_answers for your own jobs, up to the largest number of GPUs that is planned: why cheapest_for returns no row for a job, and what would have to change. jobs: the name of a table or CTE; see completed_jobs for its columns.';
