-- fail: a rental's price is stale, flagged or unavailable, or is for an unmatched GPU or a slice of a GPU
SELECT r.source, r.raw_label, r.gpu_id, r.price_day
FROM main.rentals AS r
LEFT JOIN main.sources AS s USING (source)
WHERE s.source IS NULL OR getvariable('as_of_day')::DATE - r.price_day > s.stale_after_days
    OR r.price_day > getvariable('as_of_day')::DATE
    OR NOT EXISTS (
        FROM main.offers_latest AS o
        WHERE o.ranked AND o.source = r.source AND o.gpu_id = r.gpu_id AND o.raw_label = r.raw_label
            AND o.flag_reason IS NULL AND o.gpu_count = floor(o.gpu_count)
    )
