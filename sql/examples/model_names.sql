-- Which models are planned as another model with the same shapes?
SELECT name, model, source
FROM model_names
ORDER BY model, name
