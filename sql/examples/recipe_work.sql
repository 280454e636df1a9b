-- How many operations does the host launch per layer, forward and backward, by recipe?
SELECT recipe, attention, round(sum(layers)) AS operations_per_layer
FROM recipe_work
WHERE quantity IN ('python_operations', 'autograd_operations') AND part = 'step'
GROUP BY recipe, attention
ORDER BY recipe, attention
