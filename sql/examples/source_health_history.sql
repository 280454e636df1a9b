-- On how many days did each source fail, when did it last fail, and why?
SELECT source, count(*) AS days_asked, count(*) FILTER (state <> 'current') AS days_failed,
    max(day) FILTER (state <> 'current') AS last_failed_day,
    arg_max(why, day) FILTER (state <> 'current') AS why,
    sum(failed_requests) / sum(requests) AS failed_request_share
FROM source_health_history
GROUP BY source
ORDER BY days_failed DESC, source
