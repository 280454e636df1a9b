-- What does each technique save in memory and cost in time for an 8B model on an H100?
SELECT technique, method, changed, memory_saved_share, time_cost_share, fits_without, fits_with
FROM technique_effects
WHERE model = 'llama-3.1-8b' AND gpu_id = 'h100-sxm-80gb'
ORDER BY memory_saved_share DESC NULLS LAST, technique, method
