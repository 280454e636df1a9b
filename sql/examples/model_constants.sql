-- Which constants does the memory and speed model use?
SELECT name, value
FROM model_constants
WHERE calibration = 'all'
ORDER BY name
