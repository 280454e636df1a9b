-- warn: a region is not in catalog/regions.csv
SELECT source, region, offers, example_url
FROM main.unmatched_regions
WHERE NOT reviewed
