CREATE TABLE main.reject_reasons (
    reason VARCHAR PRIMARY KEY,
    sentence VARCHAR NOT NULL
);

COMMENT ON TABLE main.reject_reasons IS 'Every reason for which a row of an answer becomes no offer.';
COMMENT ON COLUMN main.reject_reasons.reason IS 'Short code of the reason, as in rejects.';
COMMENT ON COLUMN main.reject_reasons.sentence IS 'What the code says about the row.';
