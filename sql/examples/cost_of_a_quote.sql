-- What would a job cost on 8 GPUs quoted at 2.10 USD per GPU-hour, billed hourly, at 90,000 tokens a second?
WITH my_quote AS (
    SELECT 8 * 2.10 AS usd_per_hour, 3600 AS billing_increment_seconds, 90000 AS tokens_per_second,
        2e9 AS tokens, 15 AS result_gib, 15 AS model_download_gib
)

SELECT total_usd, compute_usd, storage_usd, egress_usd, billed_hours, setup_hours, train_hours
FROM cost_of('my_quote')
