-- How many offers and rejects does each source have on each recorded day?
SELECT day, source, offers, rejects, held
FROM recorded_days
ORDER BY day DESC, offers DESC, source
