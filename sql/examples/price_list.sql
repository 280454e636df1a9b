-- Where is an H100 SXM cheapest per hour, for each price kind?
SELECT
    price_kind, min(usd_per_gpu_hour) AS usd_per_gpu_hour, arg_min(provider, usd_per_gpu_hour) AS provider,
    arg_min(region, usd_per_gpu_hour) AS region, count(*) AS offers
FROM price_list
WHERE gpu_id = 'h100-sxm-80gb'
GROUP BY price_kind
ORDER BY usd_per_gpu_hour
