-- Which numbers besides prices and plans enter a total, and where does each come from?
SELECT name, applies_to, value, unit, source, note
FROM cost_parameters
ORDER BY name, applies_to
