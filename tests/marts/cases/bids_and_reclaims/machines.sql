WITH given AS (
    SELECT
        3.6e7 AS tokens, 1000e0 AS tokens_per_second, 1.0 AS usd_per_hour, 'spot' AS price_kind,
        unnest([1, 2, 4]) AS node_count, 1800e0 AS further_machine_wait_seconds
)

SELECT node_count, interruptions, wait_hours, hours - wait_hours AS paid_hours
FROM cost_of('given')
