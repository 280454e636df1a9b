-- Which measured runs does a trace miss by more than 10%?
SELECT run_id, recipe, model, quantity, measured_gib, traced_gib, error
FROM trace_accuracy
WHERE abs(error) > 0.1
ORDER BY abs(error) DESC, run_id, quantity
