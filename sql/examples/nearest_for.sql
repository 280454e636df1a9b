-- Which constraints could be relaxed if no offer trains a 70B model for 20 USD in two hours in the EU?
WITH my_job AS (
    SELECT 'llama-3.1-70b' AS model, 'qlora' AS method, 20e6 AS tokens, 'eu' AS country, 2 AS max_hours,
        20 AS max_usd
)

SELECT constraints, asked, nearest, total_usd, hours, gpu, gpu_count, provider
FROM nearest_for('my_job')
