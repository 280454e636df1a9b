-- What do the sources' words for regions in one country mean?
SELECT source, region, place, evidence_url
FROM regions
WHERE country = 'FI'
ORDER BY ALL
