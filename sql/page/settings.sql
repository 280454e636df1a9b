SELECT setting, kind, recipe, least, most, default_value, unit, named, constrains, other_name, meaning
FROM main.job_settings
