-- What to change when a job has no answer: a constraint, or a setting of the recipe.

CREATE OR REPLACE MACRO least_relaxed_seq_len() AS 512;
COMMENT ON FUNCTION least_relaxed_seq_len IS
    'The length, in tokens, down to which sequences are halved in search of an answer for a job without one. Assumed.';

CREATE OR REPLACE MACRO jobs_too_large(jobs, plans) AS TABLE
SELECT j.job
FROM query_table(jobs) AS j
JOIN main.rentals AS r
    ON is_wanted(r.gpu_id, j.constraints.gpu_id)
    AND r.gpu_count BETWEEN coalesce(j.min_gpus, 1) AND j.max_gpus
    AND r.node_count <= coalesce(j.max_nodes, r.node_count)
    AND is_rental_wanted(
        r.price_kind, r.provider, r.source, r.tier_class, r.country, r.continent, r.term_days,
        r.price_age_days, r.size_evidence, j.price_kinds, j.constraints, j.assumed_sizes
    )
    AND is_open_place(r.renter_notice, r.country, j.constraints)
LEFT JOIN query_table(plans) AS p
    ON p.job = j.job AND p.gpu_id = r.gpu_id AND p.gpu_count = r.gpu_count AND p.node_count = r.node_count
    AND p.verdict <> 'does_not_fit' AND p.fit_probability >= j.min_fit_probability
GROUP BY j.job
HAVING count(p.job) = 0;
COMMENT ON MACRO TABLE jobs_too_large IS
    'The jobs that fit on none of the machines that meet their constraints, if there are such machines. jobs: rows of completed_jobs; plans: rows of plans, with their job.';

CREATE OR REPLACE MACRO relaxed_jobs(jobs, plans) AS TABLE
WITH _relaxing AS (
    SELECT
        j.*, j.job AS of_job,
        list_concat(
            [CASE WHEN j.micro_batch IS NOT NULL THEN miss('micro_batch', NULL) END],
            CASE WHEN t.job IS NOT NULL THEN list_concat(
                [
                    CASE WHEN j.offload IS NULL THEN miss('offload', 'cpu') END,
                    CASE WHEN j.method IN ('full', 'pretrain') AND j.optimizer IS DISTINCT FROM 'adamw8bit'
                            THEN miss('optimizer', 'adamw8bit')
                    END,
                    CASE
                        WHEN coalesce(j.training_precision, usual_precision(j.method)) NOT IN ('bf16', 'fp16')
                            THEN miss('training_precision', 'bf16')
                    END,
                    -- The layers that a job names for a method without adapters were not read.
                    CASE WHEN j.method = 'full' AND j.asked['lora_targets'] IS NULL
                            THEN miss('method', 'lora', 1)
                    END,
                    CASE WHEN j.method = 'lora' OR (j.method = 'full' AND j.asked['lora_targets'] IS NULL)
                            THEN miss('method', 'qlora', 2)
                    END
                ],
                list_transform(
                    list_filter(
                        [j.seq_len // 2, j.seq_len // 4, j.seq_len // 8, j.seq_len // 16],
                        lambda shorter: shorter >= least_relaxed_seq_len()
                    ),
                    lambda shorter: miss('seq_len', shorter, -shorter)
                )
            ) END
        ) AS changes
    FROM with_rented_gpus(jobs) AS j
    LEFT JOIN jobs_too_large(jobs, plans) AS t USING (job)
)

SELECT * EXCLUDE (changes), NULL AS relaxed
FROM _relaxing
UNION ALL
SELECT
    * REPLACE (
        concat_ws(chr(31), of_job, relaxed.setting, relaxed.nearest) AS job,
        CASE WHEN relaxed.setting <> 'micro_batch' THEN micro_batch END AS micro_batch,
        CASE relaxed.setting WHEN 'offload' THEN relaxed.nearest ELSE offload END AS offload,
        CASE relaxed.setting WHEN 'optimizer' THEN relaxed.nearest ELSE optimizer END AS optimizer,
        CASE relaxed.setting WHEN 'training_precision' THEN relaxed.nearest ELSE training_precision END
            AS training_precision,
        CASE relaxed.setting WHEN 'method' THEN relaxed.nearest ELSE method END AS method,
        CASE
            WHEN relaxed.setting = 'method' THEN coalesce(
                lora_rank, try_cast(asked['lora_rank'] AS INTEGER),
                (SELECT d.lora_rank FROM plan_defaults() AS d)
            )
            ELSE lora_rank
        END AS lora_rank,
        CASE relaxed.setting WHEN 'seq_len' THEN try_cast(relaxed.nearest AS INTEGER) ELSE seq_len END
            AS seq_len
    )
FROM (
    SELECT * EXCLUDE (changes), unnest(list_filter(changes, lambda change: change IS NOT NULL)) AS relaxed
    FROM _relaxing
);
COMMENT ON MACRO TABLE relaxed_jobs IS
    'Each job, and variants of the job with one setting of its recipe changed. Every job with a micro_batch has a variant with any micro_batch. A job that fits on no machine that it asks for (jobs_too_large) has variants with offload cpu, with optimizer adamw8bit and training_precision bf16 (if it trains in more bytes), with the methods that need less memory (full: lora and qlora; lora: qlora), and with shorter sequences (down to least_relaxed_seq_len). Other settings of the recipe stay as they are. of_job: the job; job: the name of the variant; relaxed: the changed setting with its new value (miss), null for the job itself; the value is null for micro_batch, which the planner chooses. jobs: rows of completed_jobs; plans: the rows of plans for the jobs as they are.';

CREATE OR REPLACE MACRO nearest_answers(jobs, plans) AS TABLE
WITH _relaxed AS (
    FROM relaxed_jobs(jobs, plans)
),

_open_jobs AS (
    SELECT * REPLACE ('all' AS opened) FROM _relaxed
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
            [CASE
                WHEN j.relaxed IS NOT NULL THEN miss(
                    j.relaxed.setting, coalesce(j.relaxed.nearest, p.micro_batch::VARCHAR),
                    j.relaxed.distance
                )
            END]
        ), lambda each: each IS NOT NULL) AS misses,
        list_transform(misses, lambda each: each.setting) AS missed
    FROM eligible_costs('_open_costs', '_open_jobs') AS c
    JOIN _relaxed AS j ON j.job = c.job
    JOIN query_table(plans) AS p
        ON p.job = c.job AND p.gpu_id = c.gpu_id AND p.gpu_count = c.gpu_count AND p.node_count = c.node_count
    LEFT JOIN main.rentals AS r ON r.rowid = c.offer
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
            WHEN 'gpus' THEN j.max_gpus::VARCHAR
            ELSE coalesce(j.asked[name], d.p[name], CASE name
                WHEN 'training_precision' THEN usual_precision(j.method)
                WHEN 'offload' THEN 'none'
                ELSE 'false'
            END)
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
    'For each job without an answer, the constraints and settings of the recipe (relaxed_jobs) that could be changed: single ones, each with the nearest value that gives an answer while all others stay the same, or, if no single one helps, the smallest sets that do. One row per job and set: job, constraints (columns of jobs; memory if the model does not fit on any GPU), asked and nearest (lists of strings with one value per constraint), and the resulting answer: total_usd, hours, fit_probability, gpu_id, gpu, gpu_count, node_count, provider, source and price_kind. For memory, the row gives the gpu_id and gpu_count that fall short by the fewest GiB per GPU, and lacking_gib, the shortfall in GiB. asked contains the values as written in the job. For constraints on numbers, for seq_len and for method, nearest contains the nearest value; for constraints on names, and for micro_batch, the value of the cheapest answer. The answers come from the given plans. Jobs with an answer have no row. jobs: rows of completed_jobs; plans: the rows of plans for relaxed_jobs, up to the largest number of GPUs to consider.';

CREATE OR REPLACE MACRO nearest_for(jobs) AS TABLE
WITH _nearest_jobs AS (
    SELECT * FROM completed_jobs(jobs)
),

_nearest_settings AS (
    SELECT j.* REPLACE (d.max_gpus AS max_gpus)
    FROM _nearest_jobs AS j
    CROSS JOIN plan_defaults() AS d
),

_nearest_as_asked AS MATERIALIZED (
    SELECT * FROM job_plans('_nearest_settings')
),

_nearest_relaxed AS (
    SELECT j.* REPLACE (d.max_gpus AS max_gpus)
    FROM relaxed_jobs('_nearest_jobs', '_nearest_as_asked') AS j
    CROSS JOIN plan_defaults() AS d
    WHERE j.relaxed IS NOT NULL
),

_nearest_plans AS MATERIALIZED (
    SELECT * FROM _nearest_as_asked
    UNION ALL BY NAME
    SELECT * FROM job_plans('_nearest_relaxed')
)

FROM nearest_answers('_nearest_jobs', '_nearest_plans');
COMMENT ON MACRO TABLE nearest_for IS
    'nearest_answers for your own jobs, up to the largest number of GPUs that is planned: why cheapest_for returns no row for a job, and what would have to change. jobs: the name of a table or CTE; see completed_jobs for its columns.';
