-- How accurate is the model on held-out runs, by method, and how often does the band contain the measurement?
SELECT quantity, "group" AS method, runs, median_error_held_out, mean_error_held_out, share_in_band
FROM model_accuracy_summary
WHERE grouped_by = 'method'
ORDER BY quantity, method
