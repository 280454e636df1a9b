-- Which regions of the sources are in one country?
SELECT source, region, place, evidence_url
FROM regions
WHERE country = 'FI'
ORDER BY ALL
