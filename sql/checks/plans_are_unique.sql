-- fail: there are two plans for the same job, GPU and number of GPUs
SELECT model, method, seq_len, lora_rank, gpu_id, gpu_count, node_count, count(*) AS plans
FROM main.plans
GROUP BY ALL
HAVING count(*) > 1
