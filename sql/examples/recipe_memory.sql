-- How many bytes of logits does each traced recipe need per token and vocabulary entry?
SELECT recipe, moment, bytes
FROM recipe_memory
WHERE category = 'logits' AND feature = 'vocabulary'
ORDER BY bytes DESC, recipe, moment
