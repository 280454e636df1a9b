-- Which of the guides' claims are wrong, by how much, and why?
SELECT claim_id, claim, verdict, should_be, unit, why
FROM claim_audit
WHERE verdict LIKE 'contradicted%' OR verdict = 'arithmetic wrong'
ORDER BY claim_id
