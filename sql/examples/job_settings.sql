-- What can a job ask for, and what is taken where it leaves that open?
SELECT setting, kind, default_value, unit, meaning
FROM job_settings
ORDER BY recipe DESC, setting
