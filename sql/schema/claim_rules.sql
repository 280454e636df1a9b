CREATE TABLE main.claim_rules (
    name VARCHAR PRIMARY KEY,
    value DOUBLE NOT NULL,
    unit VARCHAR NOT NULL,
    note VARCHAR NOT NULL
);

COMMENT ON TABLE main.claim_rules IS 'The tolerances that claim_audit applies in addition to the tolerance of each claim and the error bands of the model.';
COMMENT ON COLUMN main.claim_rules.name IS 'The rule.';
COMMENT ON COLUMN main.claim_rules.value IS 'Its value, in the unit given by unit.';
COMMENT ON COLUMN main.claim_rules.unit IS 'The unit.';
COMMENT ON COLUMN main.claim_rules.note IS 'What it means and why this value.';
