WITH _seen AS (
    SELECT source, raw_label, min(first_day) AS first_day, max(day) AS last_day
    FROM (
        SELECT source, raw_label, day AS first_day, day
        FROM main.offers
        WHERE match_status IN ('ambiguous', 'unknown') AND day <= getvariable('as_of_day')::DATE
        UNION ALL BY NAME
        SELECT source, name AS raw_label, first_day
        FROM history.first_seen
        WHERE kind = 'label'
    )
    GROUP BY ALL
)

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
JOIN _seen USING (source, raw_label)
WHERE match_status IN ('ambiguous', 'unknown')
GROUP BY ALL
