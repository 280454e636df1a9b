-- history: covers the offers and rejects that are loaded
WITH _counted AS (
    SELECT source, day, count(*) AS offers
    FROM main.offers
    GROUP BY source, day
    UNION ALL BY NAME
    SELECT r.source, r.day, count(*) AS rejects, count(*) FILTER (k.held) AS held
    FROM main.rejects AS r
    LEFT JOIN main.reject_reasons AS k USING (reason)
    GROUP BY r.source, r.day
)

SELECT
    source, day,
    coalesce(sum(offers), 0) AS offers, coalesce(sum(rejects), 0) AS rejects, coalesce(sum(held), 0) AS held
FROM _counted
GROUP BY source, day
ORDER BY day, source
