-- timeless: depends on the catalogue and the model, not on the day
-- in parts by model
WITH _plan_jobs AS (
    SELECT DISTINCT
        concat_ws(' ', model, method, seq_len, lora_rank) AS job,
        model, method, seq_len, lora_rank, list_max(planned_counts())::INTEGER AS max_gpus
    FROM main.workloads
    WHERE coalesce(list_contains(getvariable('part'), model), TRUE)
)

SELECT * EXCLUDE (job)
FROM job_plans('_plan_jobs')
ORDER BY model, method, seq_len, lora_rank, gpu_id, gpu_count, node_count
