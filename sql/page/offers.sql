SELECT
    rowid AS offer, provider, source, price_kind, tier, tier_class, country, continent, region, instance_type,
    usd_per_hour, host_usd_per_hour, gpus_billed, term_days, size_evidence, available,
    price_day, epoch_ms(observed_at) AS observed_ms, split_part(source_url, '?', 1) AS source_url
FROM main.rentals
ORDER BY rowid
