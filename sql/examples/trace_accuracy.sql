-- How close are traces of a training step, made without a GPU, to what others measured?
SELECT source, quantity, count(*) AS runs, median(abs(error)) AS median_error, max(abs(error)) AS largest_error
FROM trace_accuracy
WHERE is_identified
GROUP BY ALL
ORDER BY source, quantity
