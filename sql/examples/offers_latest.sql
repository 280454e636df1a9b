-- What does an A100 80 GB cost in each current offer, in USD and as listed, and on what evidence?
SELECT offers_latest.source, raw_label, gpu_id, gpu_count, price_kind, region, usd_per_gpu_hour, native_price,
    native_currency, fx_rate, fx_date, ranked, not_ranked_reason, source_url, capture_sha256
FROM offers_latest
JOIN gpus USING (gpu_id)
WHERE gpus.model = 'A100' AND gpus.memory_gb = 80
ORDER BY usd_per_gpu_hour
