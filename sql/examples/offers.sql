-- What did each provider ask for an H100 SXM on demand on each recorded day, and where can I check it?
SELECT day, provider, raw_label, gpu_count, usd_per_gpu_hour, native_price, native_currency, source_url
FROM offers
WHERE gpu_id = 'h100-sxm-80gb' AND price_kind = 'on_demand' AND flag_reason IS NULL
ORDER BY day DESC, usd_per_gpu_hour NULLS LAST, provider, gpu_count
