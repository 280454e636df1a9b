-- The lowest ranked price of each GPU by price kind and provider, and the extra charge for the GPU's host.
WITH _hosts AS (
    SELECT
        gpu_id, price_kind, provider,
        arg_min(host_usd_per_hour / gpus_billed, usd_per_hour / gpus_billed) AS host_usd_per_gpu_hour
    FROM main.rentals
    GROUP BY gpu_id, price_kind, provider
)

SELECT
    l.gpu_id, l.price_kind, l.provider, min(l.usd_per_gpu_hour) AS usd_per_gpu_hour,
    coalesce(any_value(h.host_usd_per_gpu_hour), 0)::DECIMAL(18, 8) AS host_usd_per_gpu_hour,
    count(*) AS offers
FROM main.price_list AS l
LEFT JOIN _hosts AS h USING (gpu_id, price_kind, provider)
GROUP BY l.gpu_id, l.price_kind, l.provider
ORDER BY l.gpu_id, l.price_kind, usd_per_gpu_hour, l.provider
