-- warn: a price per GPU is in no ranking, because the numbers of GPUs sold together are not known
SELECT source, tier, gpu_id, count(*) AS offers
FROM main.offers_latest
WHERE ranked AND size_evidence = 'assumed'
GROUP BY ALL
