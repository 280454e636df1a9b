-- Which constants does the model of memory and speed use?
SELECT name, value
FROM model_constants
WHERE calibration = 'all'
ORDER BY name
