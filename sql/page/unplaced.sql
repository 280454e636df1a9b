-- The number of ranked offers of each price kind whose country, or continent, is not stated.
SELECT
    price_kind, count(*) FILTER (country IS NULL) AS no_country,
    count(*) FILTER (continent IS NULL) AS no_continent
FROM main.offers_latest
WHERE ranked
GROUP BY price_kind
ORDER BY price_kind
