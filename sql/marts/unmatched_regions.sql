WITH _open AS (
    SELECT
        source, region, continent, first_day, last_day,
        count(*) AS offers,
        min(source_url) AS example_url
    FROM main.offers_latest
    JOIN (SELECT * RENAME (name AS region) FROM seen_days('region')) USING (source, region)
    WHERE country IS NULL
    GROUP BY ALL
)

SELECT
    o.source, o.region, o.continent,
    r.region IS NOT NULL AS reviewed,
    r.note, o.offers, o.example_url, o.first_day, o.last_day
FROM _open AS o
LEFT JOIN main.regions AS r
    ON coalesce(r.source, o.source) = o.source AND r.country IS NULL
    AND lower(o.region) GLOB replace(lower(r.region), '[', '[[]')
QUALIFY row_number() OVER (
    PARTITION BY o.source, o.region, o.continent
    ORDER BY r.source NULLS LAST, r.region
) = 1
