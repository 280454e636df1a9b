CREATE TABLE main.sources (
    source VARCHAR PRIMARY KEY,
    title VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    homepage VARCHAR NOT NULL,
    kind VARCHAR NOT NULL CHECK (kind IN ('prices', 'exchange_rates', 'imported')),
    evidence_level VARCHAR NOT NULL,
    evidence_date DATE NOT NULL,
    evidence_note VARCHAR NOT NULL,
    terms_automated VARCHAR NOT NULL CHECK (terms_automated IN ('allowed', 'silent', 'forbidden', 'unknown')),
    terms_url VARCHAR,
    terms_read_on DATE,
    terms_note VARCHAR,
    coverage_share DECIMAL(6, 4),
    coverage_regions INTEGER,
    coverage_with_key VARCHAR,
    currency VARCHAR NOT NULL,
    key_variables VARCHAR,
    needs_key BOOLEAN NOT NULL,
    disabled VARCHAR,
    stale_after_days INTEGER NOT NULL,
    billing_increment_seconds INTEGER,
    minimum_seconds INTEGER,
    min_gpu_count INTEGER,
    charged_while_stopped VARCHAR,
    storage_usd_per_gb_month DECIMAL(18, 8),
    egress_usd_per_gb DECIMAL(18, 8),
    interconnect VARCHAR,
    node_network_gbps DOUBLE,
    max_nodes INTEGER,
    tier_class VARCHAR NOT NULL,
    country VARCHAR,
    persistent_disk BOOLEAN,
    local_nvme BOOLEAN,
    serverless_training BOOLEAN,
    notes VARCHAR
);

COMMENT ON TABLE main.sources IS 'The price sources: what each is, what its reader was checked against, and what applies to all of its offers. From catalog/sources.';
COMMENT ON COLUMN main.sources.source IS 'Key, for example runpod.';
COMMENT ON COLUMN main.sources.title IS 'Usual name.';
COMMENT ON COLUMN main.sources.provider IS 'Provider of the GPUs.';
COMMENT ON COLUMN main.sources.homepage IS 'Web page.';
COMMENT ON COLUMN main.sources.kind IS 'What the source publishes: prices of GPUs, exchange rates, or imported prices of files (gpufare import).';
COMMENT ON COLUMN main.sources.evidence_level IS 'What the reader was checked against: a captured answer, code that others run, documentation, or inference. No guarantee that the source works today.';
COMMENT ON COLUMN main.sources.evidence_date IS 'Day of that evidence.';
COMMENT ON COLUMN main.sources.evidence_note IS 'That evidence in words.';
COMMENT ON COLUMN main.sources.terms_automated IS 'What the provider''s terms of use say of automated reading: allowed, silent (they were read and say nothing of it), forbidden (a live refresh asks the source only with the user''s word or key) or unknown (nobody is known to have read them). No legal advice.';
COMMENT ON COLUMN main.sources.terms_url IS 'Address of those terms; null where it is not known.';
COMMENT ON COLUMN main.sources.terms_read_on IS 'Day on which somebody read them; null where nobody is known to have.';
COMMENT ON COLUMN main.sources.terms_note IS 'Who read them, and what they say in short.';
COMMENT ON COLUMN main.sources.coverage_share IS 'Estimated share of the provider''s GPU offers that the source shows without a key, 0 to 1; null where it is not estimated.';
COMMENT ON COLUMN main.sources.coverage_regions IS 'Regions in which the provider sells GPUs; null where it is not known.';
COMMENT ON COLUMN main.sources.coverage_with_key IS 'What a key in key_variables adds; null where it adds nothing.';
COMMENT ON COLUMN main.sources.currency IS 'Currency of its prices.';
COMMENT ON COLUMN main.sources.key_variables IS 'Environment variables with its keys; null means none.';
COMMENT ON COLUMN main.sources.needs_key IS 'Whether nothing can be asked without a key; elsewhere a key only adds to what is asked.';
COMMENT ON COLUMN main.sources.disabled IS 'Why the source is not captured; null means it is.';
COMMENT ON COLUMN main.sources.stale_after_days IS 'Offers older than this leave the rankings.';
COMMENT ON COLUMN main.sources.billing_increment_seconds IS 'Running time is charged in steps of this many seconds; null where it is not stated.';
COMMENT ON COLUMN main.sources.minimum_seconds IS 'Least running time that is charged, in seconds; null where it is not stated.';
COMMENT ON COLUMN main.sources.min_gpu_count IS 'Fewest GPUs that can be rented; null where it is not stated.';
COMMENT ON COLUMN main.sources.charged_while_stopped IS 'What a stopped machine still costs, in words; null where it is not stated.';
COMMENT ON COLUMN main.sources.storage_usd_per_gb_month IS 'Price of disk in USD per GB and month; null where it is not stated.';
COMMENT ON COLUMN main.sources.egress_usd_per_gb IS 'Price of data leaving the cloud in USD per GB; null where it is not stated.';
COMMENT ON COLUMN main.sources.interconnect IS 'Fabric between machines; null where it is not stated.';
COMMENT ON COLUMN main.sources.node_network_gbps IS 'Network of one machine in 10^9 bits per second; null where it is not stated.';
COMMENT ON COLUMN main.sources.max_nodes IS 'Most machines that can be rented as one cluster; null where it is not stated.';
COMMENT ON COLUMN main.sources.tier_class IS 'tier_class of offers whose price kind and tier name none: dedicated, community, marketplace or serverless.';
COMMENT ON COLUMN main.sources.country IS 'Country of all its machines (ISO 3166-1 alpha-2), where the source states one.';
COMMENT ON COLUMN main.sources.persistent_disk IS 'A disk can outlive its machine; null where it is not stated.';
COMMENT ON COLUMN main.sources.local_nvme IS 'Machines have a fast local disk in their price; null where it is not stated.';
COMMENT ON COLUMN main.sources.serverless_training IS 'A training job of one''s own can run on its serverless offers; null where it has none.';
COMMENT ON COLUMN main.sources.notes IS 'Remarks.';
