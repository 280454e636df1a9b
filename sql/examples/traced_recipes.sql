-- Which training recipes are traced, and with which library versions and switches?
SELECT recipe, title, emulates, switches ->> 'optimizer' AS optimizer, switches ->> 'attention' AS attention,
    traces, versions, source
FROM traced_recipes
ORDER BY recipe
