-- fail: a ranking skips or repeats a rank, or is out of order
SELECT day, workload, price_kind, objective, rank
FROM main.cheapest_gpu_per_workload
WINDOW _ranking AS (PARTITION BY day, workload, price_kind, objective ORDER BY rank)
QUALIFY rank <> row_number() OVER _ranking
    OR (objective = 'cost' AND total_usd < lag(total_usd) OVER _ranking)
    OR (objective = 'time' AND round(hours, 2) < round(lag(hours) OVER _ranking, 2))
