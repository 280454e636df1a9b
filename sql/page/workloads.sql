-- The workloads, scenarios first; the columns asked_* are the options that differ from the defaults.
WITH report_asked AS (
    SELECT workload AS job, model, method, tokens FROM main.workloads
)

SELECT
    w.workload, w.title, w.note, w.scenario, w.model, coalesce(m.title, w.model) AS model_title, w.method,
    w.tokens, w.examples, w.tokens_per_example, w.epochs, w.seq_len, w.lora_rank, w.max_gpus,
    coalesce(w.max_hours, d.max_hours) AS max_hours,
    nullif(w.seq_len, d.seq_len) AS asked_seq_len, nullif(w.lora_rank, d.lora_rank) AS asked_lora_rank,
    nullif(w.max_gpus, d.max_gpus) AS asked_gpus, w.max_hours AS asked_max_hours
FROM main.workloads AS w
JOIN completed_jobs('report_asked') AS d ON d.job = w.workload
LEFT JOIN main.models AS m ON m.model = w.model
ORDER BY w.scenario DESC, m.params_total, w.model, w.method, w.seq_len, w.tokens, w.workload
