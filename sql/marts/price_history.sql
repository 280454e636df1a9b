SELECT
    day, gpu_id, price_kind, term_days, source, provider, tier, tier_class,
    count(*) AS offers,
    min(usd_per_gpu_hour) AS usd_per_gpu_hour,
    median(usd_per_gpu_hour::DOUBLE) AS median_usd_per_gpu_hour
FROM main.offers
WHERE day <= getvariable('as_of_day')::DATE
    AND match_status = 'matched' AND gpu_count = floor(gpu_count) AND usd_per_gpu_hour IS NOT NULL
    AND flag_reason IS NULL AND coalesce(available, TRUE) AND coalesce(effective_from <= day, TRUE)
GROUP BY ALL
ORDER BY day, gpu_id, price_kind, usd_per_gpu_hour, source, tier, term_days, provider
