-- Which training recipes are traced, with which versions of their libraries and which switches?
SELECT recipe, title, emulates, switches ->> 'optimizer' AS optimizer, switches ->> 'attention' AS attention,
    traces, versions, source
FROM traced_recipes
ORDER BY recipe
