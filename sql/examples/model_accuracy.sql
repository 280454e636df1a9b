-- On which held-out published runs is the model furthest off?
SELECT quantity, run_id, source, model, gpu_id, method, measured, predicted_held_out, error_held_out
FROM model_accuracy
WHERE error_held_out IS NOT NULL
ORDER BY abs(error_held_out) DESC, run_id
LIMIT 10
