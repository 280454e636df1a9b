-- How is a total made up? The billed hours and each part of the sum for the cheapest answers.
SELECT
    rank, gpu, gpu_count, gpus_billed, setup_hours, train_hours, evaluation_hours, billed_hours, usd_per_hour,
    compute_usd, interruption_usd, failure_usd, storage_usd, egress_usd, total_usd, assumptions
FROM cheapest_gpu_per_workload
WHERE workload = 'llama-3.1-8b-lora-100m' AND price_kind = 'spot' AND objective = 'cost'
    AND day = (SELECT as_of_day FROM publication)
ORDER BY rank
LIMIT 5
