-- fail: a plan that fits lacks speed, memory or a band, or the ends of a band are swapped
SELECT model, method, seq_len, gpu_id, gpu_count, memory_gib, tokens_per_second
FROM main.plans
WHERE verdict <> 'does_not_fit'
    AND NOT coalesce(
        tokens_per_second > 0 AND isfinite(tokens_per_second) AND memory_gib > 0
        AND 0 < memory_gib_low AND memory_gib_low <= memory_gib_high
        AND 0 < tokens_per_second_low AND tokens_per_second_low <= tokens_per_second_high
        AND training_state_gib >= 0 AND result_gib > 0 AND model_download_gib >= 0
        AND memory_margin_gib >= 0,
        FALSE
    )
