-- warn: fewer than 90% of a source's offers have a matched GPU
SELECT source, offers, label_coverage
FROM main.source_health
WHERE label_coverage < 0.9
