-- How much more does it cost to finish the weekly 13B run sooner?
SELECT position, gpu_id, gpu_count, provider, total_usd, hours, usd_per_hour_saved
FROM cost_hours_pareto
WHERE workload = 'weekly-13b-100b-tokens' AND price_kind = 'on_demand'
ORDER BY position
