-- Which traced recipes are used to estimate runs on the Hugging Face stack?
SELECT recipe, method, quantization, training_precision, checkpointing, flash_attention
FROM recipe_settings
WHERE stack = 'hf' AND is_mapped = 1
ORDER BY recipe
