-- Which of your own runs correct the estimates, and how far off was each estimate?
SELECT quantity, run_ids, gpu_id, method, round(exp(log_ratio), 3) AS measured_to_estimated
FROM own_corrections
ORDER BY quantity, position
