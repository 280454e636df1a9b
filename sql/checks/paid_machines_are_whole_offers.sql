-- fail: the hourly price of a rental is not a whole multiple of an offer's price
SELECT r.source, r.raw_label, r.gpu_id, r.gpu_count, r.gpus_billed, r.usd_per_hour
FROM main.rentals AS r
WHERE NOT EXISTS (
    FROM main.offers_latest AS o
    WHERE o.ranked AND o.source = r.source AND o.gpu_id = r.gpu_id AND o.price_kind = r.price_kind
        AND r.gpus_billed % o.gpu_count = 0
        AND r.usd_per_hour = o.usd_per_hour * (r.gpus_billed / o.gpu_count)::INTEGER
)
