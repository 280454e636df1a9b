CREATE TABLE main.publication (
    as_of_day DATE NOT NULL,
    as_of_time TIMESTAMPTZ NOT NULL,
    age_days INTEGER GENERATED ALWAYS AS (
        coalesce(getvariable('today')::DATE, make_timestamp(epoch_us(now()))::DATE) - as_of_day
    ) VIRTUAL,
    newest_price_day DATE,
    oldest_ranked_price_day DATE,
    sources INTEGER NOT NULL,
    sources_ranked INTEGER NOT NULL,
    offers_latest INTEGER NOT NULL,
    offers_ranked INTEGER NOT NULL,
    exchange_rate_date DATE,
    taxes VARCHAR NOT NULL
);

COMMENT ON TABLE main.publication IS 'One row: the day this database is for, and what it was built from.';
COMMENT ON COLUMN main.publication.as_of_day IS 'The day that the tables describe: rankings use the prices that were recent enough on it.';
COMMENT ON COLUMN main.publication.as_of_time IS 'When the database was built (UTC).';
COMMENT ON COLUMN main.publication.age_days IS 'Days from as_of_day to today (UTC), whenever the question is asked; gpufare refresh publishes a new file.';
COMMENT ON COLUMN main.publication.newest_price_day IS 'Day of the newest offer.';
COMMENT ON COLUMN main.publication.oldest_ranked_price_day IS 'Day of the oldest offer that is still ranked.';
COMMENT ON COLUMN main.publication.sources IS 'Price sources known.';
COMMENT ON COLUMN main.publication.sources_ranked IS 'Price sources with at least one ranked offer.';
COMMENT ON COLUMN main.publication.offers_latest IS 'Offers of each source''s last accepted day.';
COMMENT ON COLUMN main.publication.offers_ranked IS 'Those of them that rankings may use.';
COMMENT ON COLUMN main.publication.exchange_rate_date IS 'Day of the newest exchange rate in use.';
COMMENT ON COLUMN main.publication.taxes IS 'What the prices do not include.';
