SELECT quantity, source, gpu_id, measured, predicted_held_out, in_band
FROM main.model_accuracy
WHERE measured IS NOT NULL AND predicted_held_out IS NOT NULL
ORDER BY quantity, source, measured, run_id
