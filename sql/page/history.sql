-- The lowest captured price by day, GPU, price kind and provider since report_first_day, for GPUs on offer.
SELECT
    gpu_id, price_kind, provider, day - getvariable('report_first_day')::DATE AS day_number,
    min(usd_per_gpu_hour) AS usd_per_gpu_hour
FROM main.price_history
WHERE day >= getvariable('report_first_day')::DATE
    AND source <> 'imported'
    AND gpu_id IN (SELECT r.gpu_id FROM main.rentals AS r)
GROUP BY gpu_id, price_kind, provider, day
ORDER BY gpu_id, price_kind, provider, day
