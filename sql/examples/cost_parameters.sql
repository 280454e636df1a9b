-- Which numbers besides prices and plans enter a total, and what is the source of each?
SELECT name, applies_to, value, unit, source, note
FROM cost_parameters
ORDER BY name, applies_to
