SELECT
    * EXCLUDE (constraints, asked), list_sort(map_entries(asked))::VARCHAR AS as_written,
    constraints.gpu_id.wanted AS gpu, constraints.gpu_id.unwanted AS exclude_gpu,
    constraints.provider.wanted AS provider, constraints.provider.unwanted AS exclude_provider,
    constraints.source.wanted AS source, constraints.source.unwanted AS exclude_source,
    constraints.tier_class.wanted AS tier, constraints.tier_class.unwanted AS exclude_tier,
    constraints.country.wanted AS country, constraints.country.unwanted AS exclude_country,
    constraints.continent.wanted AS continent, constraints.continent.unwanted AS exclude_continent,
    constraints.term_days AS term_days, constraints.price_age_days AS price_age_days
FROM completed_jobs('given')
