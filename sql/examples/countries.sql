-- Which members of the European Union have ranked offers, and from how many providers?
SELECT c.country, c.name, count(DISTINCT o.provider) AS providers, count(*) AS offers
FROM countries AS c
JOIN offers_latest AS o ON o.country = c.country AND o.ranked
WHERE c.eu_member
GROUP BY ALL
ORDER BY providers DESC, c.country
