SELECT
    gpu_id, price_kind, usd_per_gpu_hour, usd_per_hour, gpu_count, term_days, provider, source, tier,
    tier_class, region, country, instance_type
FROM main.offers_latest
WHERE ranked
ORDER BY
    gpu_id, price_kind, usd_per_gpu_hour, usd_per_hour, gpu_count, term_days, provider, source, tier, region,
    instance_type
