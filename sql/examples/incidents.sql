-- Which files, folders or runs had trouble in the last 30 days, and what was done about it?
SELECT noticed_at, kind, source, day, path, reason, remedy
FROM incidents
WHERE epoch_us(now()) - epoch_us(noticed_at) < 30 * 24 * 3600 * 1e6
ORDER BY noticed_at DESC
