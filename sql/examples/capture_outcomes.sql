-- What was the outcome of each capture, and how many offers were read?
SELECT day, source, attempt, status, accepted, stands, rows, rejects, retries, duration_seconds
FROM capture_outcomes
ORDER BY day DESC, source, attempt
