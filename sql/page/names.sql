-- The names by which people may set the settings that the page takes, and what each means.
SELECT n.setting, n.key, n.name, n.meanings
FROM main.job_names AS n
WHERE n.setting IN (
    'model', 'method', 'gpu', 'provider', 'source', 'tier', 'country', 'continent', 'kind', 'evidence',
    'objective'
)
UNION ALL
SELECT 'model', name_key(m.model), m.model, [m.model]
FROM main.models AS m
ORDER BY ALL
