-- The number of current offers that are not ranked, by reason.
SELECT not_ranked_reason, flag_reason, count(*) AS offers, count(DISTINCT source) AS sources
FROM main.offers_latest
WHERE NOT ranked
GROUP BY not_ranked_reason, flag_reason
ORDER BY offers DESC, not_ranked_reason, flag_reason
