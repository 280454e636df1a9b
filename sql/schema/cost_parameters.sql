CREATE TABLE main.cost_parameters (
    name VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    unit VARCHAR NOT NULL,
    applies_to VARCHAR NOT NULL CHECK (applies_to = 'default' OR applies_to LIKE 'source:%'
        OR applies_to LIKE 'price_kind:%' OR applies_to LIKE 'tier_class:%'),
    source VARCHAR NOT NULL,
    note VARCHAR
);

COMMENT ON TABLE main.cost_parameters IS 'Every number of the cost formulas, and of the comparison of prices with the market, that is neither an offer nor a plan. The most specific row counts: source before class of tier before price kind before default.';
COMMENT ON COLUMN main.cost_parameters.name IS 'Name of the parameter.';
COMMENT ON COLUMN main.cost_parameters.value IS 'Its value, in the unit given by unit.';
COMMENT ON COLUMN main.cost_parameters.unit IS 'The unit.';
COMMENT ON COLUMN main.cost_parameters.applies_to IS 'default, source:<name>, price_kind:<kind> or tier_class:<class>.';
COMMENT ON COLUMN main.cost_parameters.source IS 'Where the number is from; "assumed" where no source states it.';
COMMENT ON COLUMN main.cost_parameters.note IS 'What it means and why this value.';
