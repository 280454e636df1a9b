-- The lowest price per GPU-hour of each GPU, price kind and term, provider and country, with its machine.
SELECT
    r.gpu_id, r.price_kind, r.term_days, r.provider, r.source, r.country, r.tier_class, r.renter_notice,
    ((r.usd_per_hour + r.host_usd_per_hour) / r.gpus_billed)::DECIMAL(18, 8) AS usd_per_gpu_hour,
    r.gpus_billed AS gpu_count, r.available, r.price_day
FROM main.rentals AS r
QUALIFY row_number() OVER (
    PARTITION BY r.gpu_id, r.price_kind, r.term_days, r.provider, r.source, r.country, r.tier_class
    ORDER BY usd_per_gpu_hour, r.gpus_billed, r.rowid
) = 1
ORDER BY r.gpu_id, r.price_kind, usd_per_gpu_hour, r.provider, r.term_days, r.country
