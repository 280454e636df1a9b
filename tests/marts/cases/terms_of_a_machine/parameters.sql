SELECT source, price_kind, tier_class, parameters['setup_seconds'] AS setup_seconds
FROM cost_parameters_by_tier()
WHERE source IN ('says', 'charged') AND price_kind IN ('spot', 'on_demand')
