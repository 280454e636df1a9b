-- warn: a price more than doubled, or fell by more than half, since the previous accepted day
SELECT source, gpu_id, price_kind, tier, previous_usd_per_gpu_hour, usd_per_gpu_hour, day
FROM main.price_changes
WHERE day = getvariable('as_of_day')::DATE AND coalesce(tier, '') NOT LIKE 'marketplace%'
    AND change = 'moved' AND (change_share > 1 OR change_share < -0.5)
