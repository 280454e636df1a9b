-- How accurate is the model on runs it was not fitted on, by method, and how often is the band right?
SELECT quantity, "group" AS method, runs, median_error_held_out, mean_error_held_out, share_in_band
FROM model_accuracy_summary
WHERE grouped_by = 'method'
ORDER BY quantity, method
