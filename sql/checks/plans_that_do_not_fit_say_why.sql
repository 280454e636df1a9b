-- fail: a plan does not fit and gives no reason
SELECT model, method, seq_len, gpu_id, gpu_count
FROM main.plans
WHERE verdict = 'does_not_fit' AND coalesce(infeasible_reason, '') = ''
