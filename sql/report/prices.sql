-- The cheapest ranked price of each GPU by price kind and provider.
SELECT gpu_id, price_kind, provider, min(usd_per_gpu_hour) AS usd_per_gpu_hour, count(*) AS offers
FROM main.price_list
GROUP BY gpu_id, price_kind, provider
ORDER BY gpu_id, price_kind, usd_per_gpu_hour, provider
