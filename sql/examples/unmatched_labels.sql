-- Which labels did not say for sure which GPU they mean?
SELECT source, raw_label, match_status, candidates, rule, offers, last_day
FROM unmatched_labels
ORDER BY offers DESC, source, raw_label
