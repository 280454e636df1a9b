FROM main.job_names
WHERE setting IN ('gpu', 'provider', 'source', 'country', 'kind', 'tier')
