-- Which jobs are already planned in the file, so that a question about them needs no planner?
SELECT method, seq_len, lora_rank, count(DISTINCT model) AS models,
    count(DISTINCT model) FILTER (model IN (SELECT g.model FROM plan_grid AS g)) AS models_of_the_grid
FROM grid_plans()
GROUP BY ALL
ORDER BY ALL
