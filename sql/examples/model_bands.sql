-- How far from the estimate do unseen runs lie, by method and how close the evidence is?
SELECT quantity, method, evidence, min(low_ratio) AS widest_low, max(high_ratio) AS widest_high,
    sum(runs) AS runs
FROM model_bands
GROUP BY ALL
ORDER BY quantity, method, evidence
