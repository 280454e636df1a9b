-- Which of the sources' regions are in a given country?
SELECT source, region, place, evidence_url
FROM regions
WHERE country = 'FI'
ORDER BY ALL
