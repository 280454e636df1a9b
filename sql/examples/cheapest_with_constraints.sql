-- What does my job cost in the EU on two or more Hopper cards, compared with a quote and my own cards?
WITH my_job AS (
    SELECT 'llama-3.1-8b' AS model, 'lora' AS method, 50e6 AS tokens, 3 AS epochs, 'hopper, rtx-4090' AS gpu,
        2 AS min_gpus, 'eu' AS country, 'any' AS kind, '8 x h100-sxm-80gb at 1.50' AS quote,
        '2 x rtx-4090 at 0.12' AS own
)

SELECT rank, gpu, gpu_count, provider, country, price_kind, total_usd, hours, assumptions
FROM cheapest_published('my_job')
WHERE rank <= 8
ORDER BY rank
