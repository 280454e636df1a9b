-- As which traced recipe are runs on the Hugging Face stack estimated?
SELECT recipe, method, quantization, training_precision, checkpointing, flash_attention
FROM recipe_settings
WHERE stack = 'hf' AND is_mapped = 1
ORDER BY recipe
