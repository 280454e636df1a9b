-- How good is the model on runs it has not seen, by method, and does the band hold what it promises?
SELECT quantity, "group" AS method, runs, median_error_held_out, mean_error_held_out, share_in_band
FROM model_accuracy_summary
WHERE grouped_by = 'method'
ORDER BY quantity, method
