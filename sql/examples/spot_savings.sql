-- Where does spot save money, and how often may machines be interrupted before spot costs more?
SELECT gpu_id, gpu_count, provider, price_saving_share, cost_saving_share, hours_between_interruptions,
    break_even_hours_between_interruptions
FROM spot_savings
WHERE workload = '8b-assistant-10k-examples'
ORDER BY cost_saving_share DESC
LIMIT 10
