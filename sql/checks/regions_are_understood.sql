-- warn: words for a region that catalog/regions.csv does not know
SELECT source, region, offers, example_url
FROM main.unmatched_regions
WHERE NOT reviewed
