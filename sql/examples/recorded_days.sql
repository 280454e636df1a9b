-- How much has each source given on each day on record, and how many rows were left out?
SELECT day, source, offers, rejects, held
FROM recorded_days
ORDER BY day DESC, offers DESC, source
