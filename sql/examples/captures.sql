-- What was the outcome of each capture, and what was the euro's exchange rate?
SELECT o.day, o.source, o.attempt, o.status, o.accepted, o.stands, o.rows, o.rejects, o.retries,
    o.duration_seconds, r.usd_per_unit AS usd_per_eur
FROM capture_outcomes AS o
LEFT JOIN exchange_rates AS r ON r.day = o.day AND r.currency = 'EUR'
ORDER BY o.day DESC, o.source, o.attempt
