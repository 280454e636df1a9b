-- Which labels do not identify a GPU?
SELECT source, raw_label, match_status, candidates, rule, offers, last_day
FROM unmatched_labels
ORDER BY offers DESC, source, raw_label
