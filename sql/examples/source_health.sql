-- Which sources are current, and why are the others not?
SELECT h.source, h.state, h.why, h.last_attempt_day, h.failing_since, h.last_accepted_day, h.age_days,
    h.offers, h.label_coverage, s.evidence_level, s.evidence_date
FROM source_health AS h
JOIN sources AS s USING (source)
ORDER BY h.state, h.source
