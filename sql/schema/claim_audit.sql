CREATE TABLE main.claim_audit (
    claim_id VARCHAR PRIMARY KEY,
    document VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    line INTEGER NOT NULL,
    place VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    claim VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    value_high DOUBLE,
    verdict VARCHAR NOT NULL CHECK (verdict IN (
        'holds',
        'holds with conditions',
        'arithmetic wrong',
        'contradicted by measurement',
        'contradicted by another claim',
        'cannot be checked'
    )),
    should_be DOUBLE,
    unit VARCHAR NOT NULL,
    why VARCHAR NOT NULL,
    evidence VARCHAR,
    disagrees_with VARCHAR
);

COMMENT ON TABLE main.claim_audit IS 'Each number of main.claims, recomputed: from the claim''s own operands, the datasheets in gpus, published runs, the model calibrated on them, collected prices, and other claims. Every verdict is computed, none is entered by hand.';
COMMENT ON COLUMN main.claim_audit.claim_id IS 'Key into claims.';
COMMENT ON COLUMN main.claim_audit.document IS 'Short id of the document.';
COMMENT ON COLUMN main.claim_audit.title IS 'What the document is, in English.';
COMMENT ON COLUMN main.claim_audit.line IS 'Line of the document.';
COMMENT ON COLUMN main.claim_audit.place IS 'Section or table of the document.';
COMMENT ON COLUMN main.claim_audit.kind IS 'price, memory, speed, time, cost, spec, saving, quality or arithmetic.';
COMMENT ON COLUMN main.claim_audit.claim IS 'The claim in short.';
COMMENT ON COLUMN main.claim_audit.value IS 'The claimed number, or the low end of a range.';
COMMENT ON COLUMN main.claim_audit.value_high IS 'High end of a claimed range; null for a single number.';
COMMENT ON COLUMN main.claim_audit.verdict IS 'arithmetic wrong: the document''s own operands give another number. contradicted by measurement: datasheet, published runs, the calibrated model or prices of that time say otherwise. contradicted by another claim: two claims differ and there is no other evidence. holds with conditions: true only under the conditions given in why. cannot be checked: no evidence here.';
COMMENT ON COLUMN main.claim_audit.should_be IS 'The number that was recomputed, in the claim''s unit; null where there is none.';
COMMENT ON COLUMN main.claim_audit.unit IS 'Unit of value and should_be.';
COMMENT ON COLUMN main.claim_audit.why IS 'The reason in one sentence, with the numbers.';
COMMENT ON COLUMN main.claim_audit.evidence IS 'Table, run, GPU, source or claim that the verdict rests on.';
COMMENT ON COLUMN main.claim_audit.disagrees_with IS 'Claims whose numbers differ from this one''s beyond tolerance.';
