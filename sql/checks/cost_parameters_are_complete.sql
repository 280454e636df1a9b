-- fail: a cost parameter has no default, or has two values for the same case
SELECT name, applies_to, count(*) AS rows
FROM main.cost_parameters
GROUP BY ALL
HAVING count(*) > 1
UNION ALL
SELECT name, 'default', 0
FROM main.cost_parameters
GROUP BY name
HAVING NOT bool_or(applies_to = 'default')
