-- warn: a source's last accepted prices are too old to be ranked
SELECT source, last_accepted_day, age_days, stale_after_days, last_error
FROM main.source_health
WHERE state = 'stale'
