-- Where a user's own machines and quotes rank.

CREATE OR REPLACE MACRO machine_ranks(jobs, plans, ranked) AS TABLE
WITH _rank_machines AS (
    SELECT job, machine.source, machine.text AS asked, machine.gpus, machine.gpu_id
    FROM (SELECT job, unnest(machines) AS machine FROM query_table(jobs))
),

-- An empty list of price kinds excludes all offers on the market, but not the machines that a job lists.
_rank_jobs AS (
    SELECT * REPLACE ('plans' AS opened, []::VARCHAR[] AS price_kinds)
    FROM query_table(jobs)
),

_rank_candidates AS MATERIALIZED (
    FROM job_candidates('_rank_jobs', plans)
),

_rank_costs AS MATERIALIZED (
    FROM candidate_costs('_rank_candidates', ['middle'])
),

_rank_missed AS (
    SELECT
        c.job, c.source, c.asked, c.gpu_count, c.node_count, c.total_usd, c.hours,
        p.fit_probability, p.evidence,
        list_filter([
            CASE WHEN NOT is_wanted(c.gpu_id, j.constraints.gpu_id) THEN 'gpu' END,
            CASE WHEN c.gpu_count > j.max_gpus THEN 'gpus' END,
            CASE WHEN c.gpu_count < j.min_gpus THEN 'min_gpus' END,
            CASE WHEN c.node_count > j.max_nodes THEN 'max_nodes' END,
            CASE WHEN p.fit_probability < j.min_fit_probability THEN 'min_fit_probability' END,
            CASE WHEN NOT list_contains(j.evidences, p.evidence) THEN 'evidence' END,
            CASE WHEN c.hours > j.max_hours THEN 'max_hours' END,
            CASE WHEN c.total_usd > j.max_usd THEN 'max_usd' END
        ], lambda missed: missed IS NOT NULL) AS missed
    FROM _rank_costs AS c
    JOIN query_table(jobs) AS j ON j.job = c.job
    JOIN query_table(plans) AS p
        ON p.job = c.job AND p.gpu_id = c.gpu_id AND p.gpu_count = c.gpu_count AND p.node_count = c.node_count
    WHERE c.asked IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY c.job, c.source, c.asked ORDER BY len(missed), c.total_usd, c.hours, c.gpu_count
    ) = 1
),

_rank_ranked AS (
    SELECT
        job, source, raw_label AS asked, min(rank) AS rank, arg_min(gpu_count, rank) AS gpu_count,
        arg_min(total_usd, rank) AS total_usd, arg_min(hours, rank) AS hours
    FROM query_table(ranked)
    WHERE source IN ('quote', 'own')
    GROUP BY job, source, raw_label
),

_rank_lengths AS (
    SELECT job, max(rank) AS ranks
    FROM query_table(ranked)
    GROUP BY job
),

-- For each machine: whether it is planned, and the largest plan on its GPUs that does not fit.
_rank_plans AS (
    SELECT
        m.job, m.source, m.asked, any_value(m.gpus) AS gpus, any_value(m.gpu_id) AS gpu_id,
        bool_or(p.job IS NOT NULL) AS is_planned,
        arg_max({
            'infeasible_reason': p.infeasible_reason, 'usable_memory_gib': p.usable_memory_gib,
            'needed_gib': p.usable_memory_gib - p.memory_margin_gib
        }, p.gpu_count) FILTER (
            p.verdict = 'does_not_fit' AND p.gpu_count <= m.gpus
        ) AS infeasible,
        any_value(j.max_gpus) AS max_gpus
    FROM _rank_machines AS m
    JOIN query_table(jobs) AS j ON j.job = m.job
    LEFT JOIN query_table(plans) AS p ON p.job = m.job AND p.gpu_id = m.gpu_id
    GROUP BY m.job, m.source, m.asked
)

SELECT
    m.job, m.source, m.asked AS machine, r.rank, coalesce(l.ranks, 0) AS ranks,
    coalesce(r.gpu_count, c.gpu_count) AS gpu_count, coalesce(r.total_usd, c.total_usd) AS total_usd,
    coalesce(r.hours, c.hours) AS hours,
    CASE
        WHEN r.rank IS NOT NULL THEN 'ranked'
        WHEN len(c.missed) > 0 THEN 'not_as_asked'
        WHEN c.job IS NOT NULL THEN 'another_costs_less'
        WHEN m.infeasible IS NOT NULL THEN 'does_not_fit'
        WHEN m.is_planned AND m.gpus > m.max_gpus THEN 'too_many_gpus'
        ELSE 'not_planned'
    END AS reason,
    CASE WHEN reason = 'not_as_asked' THEN c.missed END AS missed,
    m.gpus, c.node_count, c.fit_probability, c.evidence, m.infeasible.infeasible_reason,
    m.infeasible.needed_gib, m.infeasible.usable_memory_gib
FROM _rank_plans AS m
LEFT JOIN _rank_ranked AS r ON r.job = m.job AND r.source = m.source AND r.asked = m.asked
LEFT JOIN _rank_missed AS c ON c.job = m.job AND c.source = m.source AND c.asked = m.asked
LEFT JOIN _rank_lengths AS l ON l.job = m.job
ORDER BY m.job, r.rank NULLS LAST, m.source, m.asked;
COMMENT ON MACRO TABLE machine_ranks IS
    'The rank of each machine that a job names (quote, own), or the reason why the machine has no rank: job, source (quote or own), machine (as written in the job), rank (the machine''s best), ranks (the length of the ranking), gpu_count, total_usd, hours (of the variant nearest to being ranked), reason, missed (the columns of jobs whose constraints the machine does not meet), and the facts behind the reason. Reasons: ranked, not_as_asked, another_costs_less, does_not_fit, too_many_gpus and not_planned. Facts: gpus (of the machine), node_count, fit_probability, evidence, infeasible_reason (see plans), needed_gib and usable_memory_gib. jobs: rows of completed_jobs; plans: rows of job_plans; ranked: rows of cheapest_for.';

CREATE OR REPLACE MACRO machine_ranks_for(jobs) AS TABLE
WITH _machine_jobs AS (
    SELECT * FROM completed_jobs(jobs)
),

_machine_plans AS MATERIALIZED (
    SELECT * FROM job_plans('_machine_jobs')
),

_machine_ranked AS MATERIALIZED (
    SELECT * FROM ranked_jobs('_machine_jobs', '_machine_plans')
)

FROM machine_ranks('_machine_jobs', '_machine_plans', '_machine_ranked');
COMMENT ON MACRO TABLE machine_ranks_for IS
    'machine_ranks for your own jobs: where quoted machines and your own machines rank in cheapest_for, or why they do not appear there. jobs: the name of a table or CTE; see completed_jobs for its columns.';
