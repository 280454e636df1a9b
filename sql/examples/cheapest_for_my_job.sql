-- Where is it cheapest to fine-tune Llama 3.1 8B with LoRA on 20,000 examples, and how certain is the cost?
WITH my_job AS (
    SELECT 'llama-3.1-8b' AS model, 'lora' AS method, 20000 AS examples, 600 AS tokens_per_example,
        3 AS epochs
)

SELECT rank, gpu, gpu_count, provider, region, total_usd, total_usd_low, total_usd_high, hours,
    price_age_days, evidence
FROM cheapest_for('my_job')
WHERE rank <= 5
ORDER BY rank
