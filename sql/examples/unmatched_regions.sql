-- Which regions have no known country?
SELECT source, region, continent, reviewed, offers, last_day
FROM unmatched_regions
ORDER BY reviewed, offers DESC, source, region
