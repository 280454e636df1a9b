-- fail: a workload has no plan, or names a model that is not in the catalogue
SELECT workload, w.model, w.method, w.seq_len, w.lora_rank
FROM main.workloads AS w
WHERE NOT EXISTS (
    FROM main.plans AS p
    WHERE p.model = w.model AND p.method = w.method AND p.seq_len = w.seq_len
        AND p.lora_rank IS NOT DISTINCT FROM w.lora_rank
)
