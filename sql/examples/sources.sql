-- Which providers' terms allow automated reading, which forbid it, and where are the terms?
SELECT source, provider, terms_automated, terms_url, terms_read_on, disabled
FROM sources
WHERE terms_automated IN ('allowed', 'forbidden')
ORDER BY terms_automated, source
