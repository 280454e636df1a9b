-- Which cards are not ranked for full fine-tuning of an 8B model, and why?
SELECT gpu_id, reason, fits_from_gpus, fit_probability, least_memory_gib, usable_memory_gib,
    infeasible_reason
FROM why_not
WHERE model = 'llama-3.1-8b' AND method = 'full' AND seq_len = 2048
ORDER BY reason, gpu_id
