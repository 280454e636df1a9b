-- Why does no RTX 4090 stand in the ranking for some jobs?
SELECT model, method, seq_len, reason, least_memory_gib, usable_memory_gib, detail
FROM why_not
WHERE gpu_id = 'rtx-4090'
ORDER BY model, method, seq_len
