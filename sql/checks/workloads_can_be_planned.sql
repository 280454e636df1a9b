-- fail: a workload has no plan, or names a model that is not in the catalogue
SELECT workload, w.model, w.method, w.seq_len, w.lora_rank
FROM main.workloads AS w
WHERE w.workload NOT IN (SELECT p.job FROM workload_plans() AS p)
