-- By which tolerances are claims judged?
SELECT name, value, unit, note
FROM claim_rules
ORDER BY name
