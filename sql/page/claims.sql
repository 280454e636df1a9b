SELECT title, line, kind, claim, value, value_high, unit, verdict, should_be, why
FROM main.claim_audit
ORDER BY title, line, claim_id
