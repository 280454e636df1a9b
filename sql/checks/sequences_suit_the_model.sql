-- fail: a workload's sequences are longer than its model supports
SELECT w.workload, w.seq_len, m.max_context
FROM main.workloads AS w
JOIN main.models AS m USING (model)
WHERE w.seq_len > m.max_context
