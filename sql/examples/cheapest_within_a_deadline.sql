-- Two jobs at once: which offers are cheapest within a day, and which are fastest on at most two GPUs?
WITH my_jobs AS (
    SELECT 'overnight' AS job, 'qwen2.5-14b' AS model, 'qlora' AS method, 200e6 AS tokens, 4096 AS seq_len,
        24 AS max_hours, 'any' AS kind, 8 AS gpus, 'cost' AS objective
    UNION ALL
    SELECT 'two GPUs', 'mistral-7b-v0.3', 'full', 50e6, 2048, NULL, 'on_demand', 2, 'time'
)

SELECT job, rank, gpu, gpu_count, provider, price_kind, total_usd, hours,
    fit_probability, longer_wait_usd, longer_wait_hours, longer_wait_way, assumptions
FROM cheapest_for('my_jobs')
WHERE rank <= 3
ORDER BY job, rank
