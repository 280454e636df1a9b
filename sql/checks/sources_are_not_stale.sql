-- warn: the last accepted prices or exchange rates of an enabled source are older than the source allows
SELECT source, last_accepted_day, stale_after_days, last_error
FROM main.source_health
WHERE last_accepted_day + stale_after_days < getvariable('as_of_day')::DATE AND no_permission IS NULL
    AND disabled IS NULL
