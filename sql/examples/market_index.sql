-- What does each GPU cost on the market today, and how far apart are the providers?
SELECT gpu_id, providers, minimum_usd_per_gpu_hour, median_usd_per_gpu_hour, upper_quartile_usd_per_gpu_hour
FROM market_index
WHERE price_kind = 'on_demand' AND day = (SELECT as_of_day FROM publication)
ORDER BY providers DESC, gpu_id
LIMIT 20
