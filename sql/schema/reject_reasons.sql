CREATE TABLE main.reject_reasons (
    reason VARCHAR PRIMARY KEY,
    sentence VARCHAR NOT NULL,
    held BOOLEAN NOT NULL
);

COMMENT ON TABLE main.reject_reasons IS 'Every reason for which a row of an answer becomes no offer.';
COMMENT ON COLUMN main.reject_reasons.reason IS 'Short code of the reason, as in rejects.';
COMMENT ON COLUMN main.reject_reasons.sentence IS 'What the code says about the row.';
COMMENT ON COLUMN main.reject_reasons.held IS 'Whether such a price was read and is only held: later readings, the market or a person''s review may release it.';
