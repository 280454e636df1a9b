SELECT r.source, r.reason, any_value(s.sentence) AS sentence, count(*) AS row_count
FROM main.rejects AS r
LEFT JOIN main.reject_reasons AS s USING (reason)
WHERE r.day = (SELECT max(x.day) FROM main.rejects AS x WHERE x.source = r.source)
GROUP BY r.source, r.reason
ORDER BY r.source, row_count DESC, r.reason
