-- How many hours a month must a GPU be used for a reservation to pay off?
SELECT gpu_id, provider, term_days, reserved_usd_per_gpu_hour, on_demand_usd_per_gpu_hour,
    break_even_hours_per_month, commitment_usd
FROM reserved_break_even
ORDER BY break_even_hours_per_month NULLS LAST
LIMIT 10
