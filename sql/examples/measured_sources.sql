-- Whose measurements is the model calibrated on, and how many measurements are there from each source?
SELECT s.family, s.source, s.title, count(*) AS runs
FROM measured_sources AS s
JOIN measured_runs AS r ON r.source = s.source
GROUP BY ALL
ORDER BY s.family, runs DESC
