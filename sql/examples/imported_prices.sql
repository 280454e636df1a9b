-- How did the price of an H100 SXM move, with what was imported from elsewhere marked as such?
SELECT
    day, 'captured' AS evidence, provider, tier, usd_per_gpu_hour, source AS observation_source
FROM price_history
WHERE gpu_id = 'h100-sxm-80gb' AND price_kind = 'on_demand'
UNION ALL
SELECT
    day, 'imported: ' || evidence AS evidence, provider, tier, usd_per_gpu_hour, observation_source
FROM imported_prices
WHERE gpu_id = 'h100-sxm-80gb' AND price_kind = 'on_demand'
ORDER BY day, usd_per_gpu_hour
