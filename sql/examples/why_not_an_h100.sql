-- Why is no H100 the answer for my job in Europe, and what are the rank and cost of each H100 that is ranked?
WITH my_jobs AS (
    SELECT 'llama-3.1-8b' AS model, 'qlora' AS method, 1e8 AS tokens, 'europe' AS continent
),

my_completed_jobs AS (
    SELECT * FROM completed_jobs('my_jobs')
),

my_plans AS (
    SELECT * FROM job_plans('my_completed_jobs')
),

my_answers AS (
    SELECT * FROM ranked_jobs('my_completed_jobs', 'my_plans')
)

SELECT gpu_id, rank, total_usd, hours, reason, counts, sold_counts, cheapest
FROM why_not_for('my_completed_jobs', 'my_plans', 'my_answers')
WHERE gpu_id LIKE 'h100-%' OR rank = 1
ORDER BY rank NULLS LAST, gpu_id
