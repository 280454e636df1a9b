-- error: no source gave prices today; all prices are of earlier days: see whether the network was down
SELECT
    count(*) AS sources,
    count(*) FILTER (last_attempt_day = getvariable('as_of_day')::DATE) AS sources_asked,
    max(last_accepted_day) AS newest_prices,
    any_value(last_error) AS an_error
FROM main.source_health
WHERE kind = 'prices' AND last_attempt_day IS NOT NULL AND disabled IS NULL AND no_permission IS NULL
HAVING count(*) > 0 AND coalesce(max(last_accepted_day) < getvariable('as_of_day')::DATE, TRUE)
