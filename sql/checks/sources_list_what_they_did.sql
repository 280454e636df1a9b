-- warn: a source no longer lists a part of what it usually does
SELECT source, lost
FROM main.capture_outcomes
WHERE day = getvariable('as_of_day')::DATE AND stands AND lost IS NOT NULL
