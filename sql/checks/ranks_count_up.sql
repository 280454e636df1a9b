-- fail: a ranking skips rank 1, repeats a rank, is out of order, or has a pick twice or lacks one
SELECT day, workload, price_kind, objective, max(rank) AS last_rank
FROM (
    SELECT
        *,
        lag({'late': NOT keeps_deadline, 'value': if(objective = 'time', round(hours, 2), total_usd)})
            OVER (PARTITION BY day, workload, price_kind, objective ORDER BY rank)
        > {'late': NOT keeps_deadline, 'value': if(objective = 'time', round(hours, 2), total_usd)}
            AS is_out_of_order
    FROM main.cheapest_gpu_per_workload
)
GROUP BY day, workload, price_kind, objective
HAVING min(rank) <> 1 OR count(DISTINCT rank) <> count(*) OR bool_or(is_out_of_order)
    OR count(*) FILTER (list_contains(pick, 'cheapest')) <> 1
    OR count(*) FILTER (list_contains(pick, 'best_value'))
    <> bool_or(coalesce(total_usd <= on_demand_usd, TRUE))::INTEGER
    OR count(*) FILTER (list_contains(pick, 'safest')) > 1
