SELECT title, line, claim, unit, verdict, should_be, why
FROM main.claim_audit
ORDER BY title, line, claim_id
