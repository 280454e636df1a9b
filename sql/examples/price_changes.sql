-- Which prices changed, by how much, and how long had the old price applied?
SELECT day, source, gpu_id, price_kind, change, previous_usd_per_gpu_hour, usd_per_gpu_hour, change_share,
    previous_since
FROM price_changes
WHERE current
ORDER BY abs(change_share) DESC NULLS LAST
LIMIT 20
