-- Which numbers besides prices and plans are in a total, and where is each from?
SELECT name, applies_to, value, unit, source, note
FROM cost_parameters
ORDER BY name, applies_to
