-- The cheapest on-demand H100s in the EU, in dollars per GPU-hour: one row per card and provider.
WITH wanted AS (
    SELECT 'h100' AS gpu, 'on_demand' AS kind, 'eu' AS country
)

SELECT usd_per_gpu_hour, gpu, gpu_count, provider, country, tier_class, price_age_days
FROM prices_for('wanted')
