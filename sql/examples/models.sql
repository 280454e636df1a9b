-- Which models with mixtures of experts can be trained, and what share of their parameters is active?
SELECT model, params_total / 1e9 AS params_billion, experts, experts_active,
    params_active / params_total AS active_share, max_context, licence
FROM models
WHERE experts > 1
ORDER BY params_total, model
