-- The lowest price of each H100 on each day on record, in dollars per GPU-hour, on demand and spot.
WITH wanted AS (
    SELECT 'h100' AS gpu, 'on_demand,spot' AS kind
)

SELECT day, gpu_id, price_kind, usd_per_gpu_hour, source, sources
FROM daily_prices_for('wanted')
