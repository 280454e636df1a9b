-- What can a job ask for, and what are the defaults?
SELECT setting, kind, default_value, unit, meaning
FROM job_settings
ORDER BY recipe DESC, setting
