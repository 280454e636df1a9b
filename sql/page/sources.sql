SELECT
    h.source, h.title, h.provider, h.last_accepted_day, h.last_attempt_day, h.last_attempt_accepted,
    h.stale_after_days, h.ranked_until, h.offers, h.offers_ranked, h.rejects, h.gpus,
    h.evidence_level, h.evidence_date, h.disabled, h.missing_key, h.no_permission,
    h.last_error, s.homepage, epoch_ms(h.attempt_due) AS attempt_due_ms
FROM main.source_health AS h
JOIN main.sources AS s USING (source)
WHERE h.kind = 'prices'
ORDER BY h.offers_ranked DESC, h.source
