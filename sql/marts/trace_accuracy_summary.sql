-- timeless: depends on the catalogue and the model, not on the day
SELECT
    source, is_identified, quantity,
    count(*) AS runs,
    median(abs(error)) AS median_error, avg(abs(error)) AS mean_error, max(abs(error)) AS largest_error,
    median(error) AS bias,
    count(*) FILTER (abs(error) <= 0.03) AS within_3_percent,
    count(*) FILTER (abs(error) > 0.1) AS beyond_10_percent
FROM main.trace_accuracy
GROUP BY source, is_identified, quantity
ORDER BY source, is_identified, quantity
