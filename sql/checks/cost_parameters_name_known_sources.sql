-- fail: a cost parameter names a source, price kind or tier class that does not exist
SELECT name, applies_to
FROM main.cost_parameters
WHERE applies_to <> 'default'
    AND applies_to NOT IN (SELECT 'source:' || source FROM main.sources)
    AND NOT list_contains(list_transform(price_kinds(), lambda kind: 'price_kind:' || kind), applies_to)
    AND NOT list_contains(list_transform(tier_classes(), lambda class: 'tier_class:' || class), applies_to)
