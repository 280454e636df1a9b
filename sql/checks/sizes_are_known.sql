-- warn: a price per GPU is in no ranking, because nothing says in which numbers of GPUs it is sold
SELECT source, tier, gpu_id, count(*) AS offers
FROM main.offers_latest
WHERE ranked AND size_evidence = 'assumed'
GROUP BY ALL
