-- What does each reject reason mean, and how often did it apply in the newest captures?
SELECT reason, sentence, count(day) AS rows
FROM reject_reasons
LEFT JOIN (FROM rejects WHERE day = (SELECT max(day) FROM rejects)) USING (reason)
GROUP BY ALL
ORDER BY rows DESC, reason
