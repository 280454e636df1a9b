SELECT
    source,
    raw_label,
    match_status,
    candidates,
    match_rule AS rule,
    count(*) AS offers,
    min(usd_per_gpu_hour) AS cheapest_usd_per_gpu_hour,
    min(source_url) AS example_url,
    first_day,
    last_day
FROM main.offers_latest
JOIN (SELECT * RENAME (name AS raw_label) FROM seen_days('label')) USING (source, raw_label)
WHERE match_status IN ('ambiguous', 'unknown')
GROUP BY ALL
