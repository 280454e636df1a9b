-- How many operations does the host launch per layer in a forward and backward pass, by recipe?
SELECT recipe, attention, round(sum(layers)) AS operations_per_layer
FROM recipe_work
WHERE quantity IN ('python_operations', 'autograd_operations') AND part = 'step'
GROUP BY recipe, attention
ORDER BY recipe, attention
