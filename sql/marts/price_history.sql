-- history: covers the days from history_from to history_to
SELECT
    day, gpu_id, price_kind, term_days, source, provider, tier, tier_class,
    count(*) AS offers,
    min(usd_per_gpu_hour) AS usd_per_gpu_hour,
    median(usd_per_gpu_hour::DOUBLE) AS median_usd_per_gpu_hour
FROM main.offers
WHERE day BETWEEN coalesce(getvariable('history_from')::DATE, '-infinity')
    AND coalesce(getvariable('history_to')::DATE, getvariable('as_of_day')::DATE)
    AND match_status = 'matched' AND gpu_count = floor(gpu_count) AND usd_per_gpu_hour IS NOT NULL
    AND coalesce(flag_reason, 'imported') = 'imported' AND coalesce(available, TRUE) AND doubt IS NULL
    AND coalesce(effective_from <= day, TRUE)
GROUP BY ALL
ORDER BY day, gpu_id, price_kind, source, tier, term_days, provider
