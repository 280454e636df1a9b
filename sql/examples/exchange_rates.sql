-- What was the euro worth on each day on which prices were read?
SELECT day, currency, usd_per_unit, rate_date
FROM exchange_rates
WHERE currency = 'EUR'
ORDER BY day DESC
