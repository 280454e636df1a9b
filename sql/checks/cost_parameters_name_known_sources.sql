-- fail: a cost parameter is for a source or price kind that does not exist
SELECT name, applies_to
FROM main.cost_parameters
WHERE applies_to <> 'default'
    AND applies_to NOT IN (SELECT 'source:' || source FROM main.sources)
    AND applies_to NOT IN (
        'price_kind:on_demand', 'price_kind:spot', 'price_kind:reserved', 'price_kind:serverless'
    )
