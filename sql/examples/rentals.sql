-- What can be rented for a job on 8 GPUs of 80 GB or more, and what is charged besides the hourly price?
SELECT gpu_id, rentals.source, instance_type, gpus_billed, size_evidence, usd_per_hour,
    billing_increment_seconds, minimum_seconds, storage_usd_per_gb_month, egress_usd_per_gb, assumptions
FROM rentals
JOIN gpus USING (gpu_id)
WHERE gpu_count = 8 AND node_count = 1 AND price_kind = 'on_demand' AND gpus.memory_gb >= 80
ORDER BY usd_per_hour
LIMIT 10
