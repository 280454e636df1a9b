-- Which training recipes are traced, and with which library versions and switches?
SELECT recipe, title, emulates, versions, switches, traces, source
FROM traced_recipes
ORDER BY recipe
