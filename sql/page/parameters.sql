SELECT name, value FROM main.cost_parameters WHERE applies_to = 'default' ORDER BY name
