SELECT setting, any_value(name ORDER BY name) AS name, key, list(DISTINCT value ORDER BY value) AS meanings
FROM (
    SELECT 'gpu' AS setting, name, key, gpu_id AS value
    FROM gpu_names()
    UNION ALL
    SELECT DISTINCT 'provider', lower(p.name), name_key(p.name), p.provider
    FROM (
        SELECT unnest([provider, source]) AS name, provider
        FROM (
            SELECT provider, source FROM main.sources WHERE kind = 'prices'
            UNION
            SELECT provider, source FROM main.rentals
        )
    ) AS p
    UNION ALL
    SELECT 'source', s.source, name_key(s.source), s.source AS value
    FROM main.sources AS s
    WHERE s.kind = 'prices'
    UNION ALL
    SELECT 'country', lower(trim(name)), name_key(name), country
    FROM (
        SELECT
            country,
            unnest(string_split(
                concat_ws(
                    ';', country, name, other_names, CASE WHEN eu_member THEN 'eu;European Union' END,
                    CASE WHEN renter_notice IS DISTINCT FROM 'sanctions' THEN replace(continent, '_', ' ') END
                ), ';'
            )) AS name
        FROM main.countries
    )
    WHERE trim(name) <> ''
    UNION ALL
    -- A model's own name is looked up in main.models, to which users add.
    SELECT 'model', n.name, name_key(n.name), n.model
    FROM (
        SELECT base_model(hf_id) AS name, model FROM main.models
        UNION
        SELECT base_model(name), model FROM main.model_names
    ) AS n
    WHERE name_key(n.name) NOT IN (SELECT name_key(m.model) FROM main.models AS m)
    UNION ALL
    SELECT 'kind', 'any', 'any', unnest(list_filter(price_kinds(), lambda kind: kind <> 'reserved'))
    UNION ALL
    SELECT setting, name, name_key(name), name AS value
    FROM (SELECT setting, unnest(string_split(choices, ' ')) AS name FROM main.job_settings)
    WHERE name <> 'any'
)
GROUP BY setting, key
ORDER BY setting, name
