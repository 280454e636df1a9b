-- Which of the sources' regions are in Finland?
SELECT source, region, place, evidence_url
FROM regions
WHERE country = 'FI'
ORDER BY ALL
