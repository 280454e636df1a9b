-- Which rows of the newest captures were rejected, and why?
SELECT source, reason, count(*) AS rows, min(detail) AS example
FROM rejects
WHERE day = (SELECT max(r.day) FROM rejects AS r)
GROUP BY ALL
ORDER BY count(*) DESC, source, reason
