SELECT m.model, coalesce(m.title, m.model) AS title, m.max_context
FROM main.models AS m
ORDER BY m.params_total, m.model
