CREATE TABLE main.claim_findings (
    claim_id VARCHAR NOT NULL,
    checked_by VARCHAR NOT NULL CHECK (
        checked_by IN ('arithmetic', 'datasheet', 'memory', 'fit', 'size', 'speed', 'ratio')
    ),
    verdict VARCHAR NOT NULL,
    should_be DOUBLE,
    why VARCHAR NOT NULL,
    evidence VARCHAR
);

COMMENT ON TABLE main.claim_findings IS 'What each check that needs no prices found about the claims that it applies to. claim_audit adds the findings from prices and from other claims, and says which finding counts.';
COMMENT ON COLUMN main.claim_findings.claim_id IS 'Key into claims.';
COMMENT ON COLUMN main.claim_findings.checked_by IS 'arithmetic on the claim''s own operands, the GPU''s datasheet or the model''s configuration, or the calibrated model and published runs: memory, fit (how many GPUs), size (of adapters and activations), speed, ratio (of one setting to another).';
COMMENT ON COLUMN main.claim_findings.verdict IS 'holds, holds with conditions, arithmetic wrong or contradicted by measurement, as in claim_audit.';
COMMENT ON COLUMN main.claim_findings.should_be IS 'The number that was recomputed, in the claim''s unit; null where there is none.';
COMMENT ON COLUMN main.claim_findings.why IS 'The reason in one sentence, with the numbers.';
COMMENT ON COLUMN main.claim_findings.evidence IS 'Table, run or GPU that the finding rests on.';
