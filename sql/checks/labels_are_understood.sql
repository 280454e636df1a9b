-- warn: fewer than nine in ten offers of a source have a matched GPU
SELECT source, offers, label_coverage
FROM main.source_health
WHERE label_coverage < 0.9
