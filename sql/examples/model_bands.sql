-- How far are held-out runs from their estimates, by method and evidence?
SELECT quantity, method, evidence, min(low_ratio) AS widest_low, max(high_ratio) AS widest_high,
    sum(runs) AS runs
FROM model_bands
GROUP BY ALL
ORDER BY quantity, method, evidence
