-- in parts by workload
WITH _workload_jobs AS (
    SELECT *, ['on_demand', 'spot'] AS price_kinds
    FROM workload_jobs()
    WHERE scenario AND coalesce(list_contains(getvariable('part'), job), TRUE)
),

_workload_plans AS (
    FROM workload_plans()
    SEMI JOIN _workload_jobs USING (job)
),

_costs AS (
    FROM priced_jobs('_workload_jobs', '_workload_plans')
),

_pairs AS (
    SELECT
        s.*,
        d.tier AS on_demand_tier,
        d.usd_per_hour AS on_demand_usd_per_hour,
        d.total_usd AS on_demand_total_usd,
        d.hours AS on_demand_hours
    FROM _costs AS s
    JOIN (
        SELECT *
        FROM _costs
        WHERE price_kind = 'on_demand'
        QUALIFY row_number() OVER (
            PARTITION BY job, gpu_id, gpu_count, node_count, source ORDER BY total_usd, tier NULLS LAST
        ) = 1
    ) AS d USING (job, gpu_id, gpu_count, node_count, source)
    WHERE s.price_kind = 'spot'
),

_budgets AS (
    SELECT
        *,
        (train_hours + evaluation_hours) * 3600 AS work_seconds,
        (train_hours + evaluation_hours + failure_hours) * 3600 AS failing_seconds,
        node_count / (hours_between_failures * 3600) AS failures_per_second,
        -- Paid seconds that interruptions may add before on demand becomes cheaper.
        (on_demand_total_usd - (total_usd - interruption_usd)) / (usd_per_hour + host_usd_per_hour) * 3600
            AS budget_seconds
    FROM _pairs
),

-- If the notice suffices for a checkpoint, the time between interruptions follows from the budget. Otherwise,
-- the logarithm of this time is found by bisection between a minute and 12 years, in 40 halvings.
_even AS (
    SELECT
        *,
        CASE WHEN notice_seconds >= checkpoint_seconds THEN
            greatest(
                ln((checkpoint_seconds + reclaim_restart_seconds) / ln(1 + budget_seconds / failing_seconds)),
                ln(60e0)
            )
        ELSE list_reduce( -- noqa: LT01
            range(1, 41),
            lambda reached, halving: reached + CASE
                WHEN expected_run_seconds(
                    work_seconds,
                    checkpoint_seconds,
                    (
                        failures_per_second * failure_restart_seconds
                        + exp(-reached - ln(6e6) * 0.5e0 ** halving) * reclaim_restart_seconds
                    ) / (failures_per_second + exp(-reached - ln(6e6) * 0.5e0 ** halving)),
                    failures_per_second + exp(-reached - ln(6e6) * 0.5e0 ** halving)
                ) - failing_seconds > budget_seconds
                THEN ln(6e6) * 0.5e0 ** halving
                ELSE 0e0
            END,
            ln(60e0)
        ) END AS ln_seconds_between_interruptions
    FROM _budgets
)

SELECT
    job AS workload, gpu_id, gpu_count, node_count, source, provider, tier AS spot_tier, on_demand_tier,
    usd_per_hour AS spot_usd_per_hour,
    on_demand_usd_per_hour,
    1 - usd_per_hour / on_demand_usd_per_hour AS price_saving_share,
    total_usd AS spot_total_usd,
    interruption_usd,
    on_demand_total_usd,
    1 - total_usd / on_demand_total_usd AS cost_saving_share,
    hours AS spot_hours,
    on_demand_hours,
    checkpoint_interval_minutes,
    interruptions,
    hours_between_interruptions,
    CASE
        WHEN budget_seconds <= 0 THEN NULL
        WHEN ln_seconds_between_interruptions = ln(60e0) THEN 0
        ELSE exp(ln_seconds_between_interruptions) / 3600 * node_count
    END AS break_even_hours_between_interruptions
FROM _even
ORDER BY workload, gpu_id, gpu_count, node_count, source, spot_tier
