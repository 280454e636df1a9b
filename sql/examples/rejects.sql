-- What was left out of the newest captures, and why?
SELECT source, reason, count(*) AS rows, min(detail) AS example
FROM rejects
WHERE day = (SELECT max(day) FROM rejects)
GROUP BY ALL
ORDER BY rows DESC, source, reason
