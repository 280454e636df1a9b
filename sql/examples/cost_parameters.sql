-- Which numbers besides prices and plans go into a total, and where does each number come from?
SELECT name, applies_to, value, unit, source, note
FROM cost_parameters
ORDER BY name, applies_to
