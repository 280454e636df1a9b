-- Where does spot really save, interruptions included, and how often may machines be reclaimed before it does not?
SELECT gpu_id, gpu_count, provider, price_saving_share, cost_saving_share, reclaim_hours, break_even_reclaim_hours
FROM spot_savings
WHERE workload = '8b-assistant-10k-examples'
ORDER BY cost_saving_share DESC
LIMIT 10
