SELECT setting, kind, recipe, least, most, default_value, unit, named, choices
FROM main.job_settings
