-- How close are traces of a training step, made without a GPU, to what others measured?
SELECT source, quantity, runs, median_error, mean_error, largest_error
FROM trace_accuracy_summary
WHERE is_identified
ORDER BY source, quantity
