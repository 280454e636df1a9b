-- warn: a source was not asked today, though it was due: its run never began, or ended before it
SELECT source, last_attempt_day, attempt_due
FROM main.source_health
WHERE attempt_due <= getvariable('as_of_time')::TIMESTAMPTZ
    AND last_attempt_day < getvariable('as_of_day')::DATE
    AND disabled IS NULL AND no_permission IS NULL AND missing_key IS NULL
