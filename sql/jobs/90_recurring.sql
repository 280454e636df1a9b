-- A job that is run again and again: machines kept all year against machines rented for each run.

CREATE OR REPLACE MACRO kept_machines(jobs, plans, runs_per_year) AS TABLE
WITH _kept_jobs AS (
    SELECT * REPLACE (['reserved'] AS price_kinds)
    FROM query_table(jobs)
),

_kept_candidates AS (
    FROM job_candidates('_kept_jobs', plans)
),

_kept_costs AS (
    FROM candidate_costs('_kept_candidates', ['middle'])
),

_kept_years AS (
    SELECT
        c.*,
        CASE WHEN c.price_kind = 'reserved' THEN ceil(365 / c.term_days) END::INTEGER AS terms,
        24 * coalesce(terms * c.term_days, 365) AS paid_hours,
        (paid_hours * (c.usd_per_hour + c.host_usd_per_hour))::DECIMAL(18, 2) AS year_usd
    FROM _kept_costs AS c
    JOIN query_table(jobs) AS j USING (job)
    WHERE c.price_kind IN ('reserved', 'quote') AND c.hours <= j.max_hours
        AND c.hours * runs_per_year <= 365 * 24
)

SELECT
    job, gpu_id, gpu, gpu_count, gpus_billed, provider, source, price_kind, tier_class, term_days, terms,
    hours, usd_per_hour, year_usd, hours * runs_per_year / paid_hours AS share_used,
    (year_usd / floor(paid_hours / hours))::DECIMAL(18, 4) AS least_run_usd
FROM _kept_years
QUALIFY row_number() OVER (
    PARTITION BY job, price_kind ORDER BY year_usd, hours, gpu_count, offer
) = 1
ORDER BY job, price_kind <> 'quote', year_usd;
COMMENT ON MACRO TABLE kept_machines IS
    'For each job, the machine that costs least if it is kept for a year (365 days) to run the job runs_per_year times: one reserved for whole terms, and one of the job''s quotes, at its price for every hour of the year; a run must finish within max_hours, and the runs must fit into the year one after another; a budget (max_usd) is for one rented run and does not count here. terms: the number of terms paid for; hours: of one run; year_usd: what the machine costs in a year, in USD, without disk and data; share_used: the share of the hours paid for that the runs take; least_run_usd: the cost of a run if the machine is used without a break. A job without such a machine has no row. jobs: rows of completed_jobs; plans: rows of plans, with their job.';
