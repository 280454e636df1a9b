-- What was the lowest cost of my job on each recorded day?
WITH my_jobs AS (
    SELECT 'llama-3.1-8b' AS model, 'qlora' AS method, 1e8 AS tokens, 'eu' AS country
),

my_completed_jobs AS (
    SELECT * FROM completed_jobs('my_jobs')
),

my_answers AS (
    SELECT * FROM cheapest_published('my_jobs')
)

SELECT day, total_usd, hours, gpu, gpu_count, provider, sources
FROM cost_history('my_completed_jobs', 'my_answers')
ORDER BY day
