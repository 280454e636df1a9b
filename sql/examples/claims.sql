-- What do the guides claim about fine-tuning a 70B model?
SELECT claim_id, document, line, claim, value, unit
FROM claims
WHERE model LIKE '%70b'
ORDER BY claim_id
