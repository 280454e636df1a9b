-- fail: a price per GPU is not the price of the whole offer divided by its number of GPUs
SELECT day, source, raw_label, gpu_count, usd_per_hour, usd_per_gpu_hour
FROM main.offers
WHERE abs(usd_per_gpu_hour * gpu_count - usd_per_hour) > 0.000001 * gpu_count
    OR (usd_per_hour IS NULL) <> (usd_per_gpu_hour IS NULL)
