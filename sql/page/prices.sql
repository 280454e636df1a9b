-- The lowest price per GPU-hour of each GPU, price kind and term, provider and country, as in gpu_prices.
SELECT
    r.gpu_id, r.price_kind, r.term_days, r.provider, r.source, r.country, r.continent, r.tier_class,
    r.renter_notice,
    min(((r.usd_per_hour + r.host_usd_per_hour) / r.gpus_billed)::DECIMAL(18, 8)) AS usd_per_gpu_hour,
    arg_min(r.gpus_billed, (r.usd_per_hour + r.host_usd_per_hour) / r.gpus_billed) AS gpu_count,
    bool_or(r.available) AS available, max(r.price_day) AS price_day
FROM main.rentals AS r
GROUP BY r.gpu_id, r.price_kind, r.term_days, r.provider, r.source, r.country, r.continent, r.tier_class,
    r.renter_notice
ORDER BY r.gpu_id, r.price_kind, usd_per_gpu_hour, r.provider, r.term_days, r.country
