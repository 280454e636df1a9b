-- How did the lowest price of an H100 SXM change from day to day at each source, including imported prices?
SELECT day, source, tier, usd_per_gpu_hour, offers
FROM price_history
WHERE gpu_id = 'h100-sxm-80gb' AND price_kind = 'on_demand'
ORDER BY day, usd_per_gpu_hour
