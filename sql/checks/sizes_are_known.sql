-- warn: a price per GPU is not in any ranking, because it is not known how many GPUs are sold together
SELECT source, tier, gpu_id, count(*) AS offers
FROM main.offers_latest
WHERE ranked AND size_evidence = 'assumed'
GROUP BY ALL
