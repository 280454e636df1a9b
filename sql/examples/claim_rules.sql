-- Which tolerances are used to judge claims?
SELECT name, value, unit, note
FROM claim_rules
ORDER BY name
