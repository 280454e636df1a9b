-- Which files, folders or runs had trouble in the last 30 days, and what was done about it?
SELECT noticed_at, kind, source, day, path, reason, remedy
FROM incidents
WHERE noticed_at >= now() - INTERVAL 30 DAY
ORDER BY noticed_at DESC
