CREATE TABLE main.exchange_rates (
    day DATE NOT NULL,
    currency VARCHAR NOT NULL,
    usd_per_unit DECIMAL(18, 8) NOT NULL CHECK (usd_per_unit > 0),
    rate_date DATE
);

COMMENT ON TABLE main.exchange_rates IS 'Daily exchange rates used to convert foreign prices to dollars.';
COMMENT ON COLUMN main.exchange_rates.day IS 'Day of the capture (UTC).';
COMMENT ON COLUMN main.exchange_rates.currency IS 'Three-letter code.';
COMMENT ON COLUMN main.exchange_rates.usd_per_unit IS 'USD for one unit of the currency.';
COMMENT ON COLUMN main.exchange_rates.rate_date IS 'Day that the rate was published for; null for the dollar itself.';
