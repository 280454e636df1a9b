CREATE TABLE main.offers (
    day DATE NOT NULL,
    source VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    raw_label VARCHAR NOT NULL,
    instance_type VARCHAR,
    gpu_id VARCHAR,
    match_status VARCHAR NOT NULL CHECK (match_status IN ('matched', 'ambiguous', 'unknown', 'not_a_gpu')),
    match_rule VARCHAR NOT NULL,
    match_confidence VARCHAR,
    candidates VARCHAR,
    gpu_count DOUBLE NOT NULL CHECK (gpu_count > 0),
    size_evidence VARCHAR NOT NULL,
    gpu_counts INTEGER[],
    price_kind VARCHAR NOT NULL
        CHECK (price_kind IN ('on_demand', 'flex_start', 'spot', 'reserved', 'serverless')),
    term_days INTEGER CHECK (term_days > 0),
    region VARCHAR,
    country VARCHAR,
    continent VARCHAR CHECK (continent IN (
        'africa', 'antarctica', 'asia', 'europe', 'north_america', 'oceania', 'south_america'
    )),
    usd_per_hour DECIMAL(18, 8) CHECK (usd_per_hour > 0),
    usd_per_gpu_hour DECIMAL(18, 8) CHECK (usd_per_gpu_hour > 0),
    native_price DECIMAL(18, 8) NOT NULL CHECK (native_price > 0),
    native_currency VARCHAR NOT NULL,
    native_unit VARCHAR NOT NULL,
    billing_increment_seconds INTEGER,
    minimum_seconds INTEGER,
    max_run_hours DOUBLE,
    min_gpu_count INTEGER,
    available BOOLEAN,
    tier VARCHAR,
    tier_class VARCHAR NOT NULL CHECK (tier_class IN ('dedicated', 'community', 'marketplace', 'serverless')),
    interconnect VARCHAR,
    node_network_gbps DOUBLE,
    max_nodes INTEGER,
    vcpus DOUBLE,
    ram_gib DOUBLE,
    local_disk_gb DOUBLE,
    storage_usd_per_gb_month DECIMAL(18, 8),
    egress_usd_per_gb DECIMAL(18, 8),
    download_usd_per_gb DECIMAL(18, 8),
    reliability DOUBLE,
    fx_rate DECIMAL(18, 8),
    fx_date DATE,
    effective_from DATE,
    flag_reason VARCHAR,
    observed_at TIMESTAMPTZ NOT NULL,
    source_url VARCHAR NOT NULL,
    capture_sha256 VARCHAR NOT NULL
);

COMMENT ON TABLE main.offers IS 'Every accepted price of every source and day, as read from the archived answer, with what it was read from. What a source does not say is null.';
COMMENT ON COLUMN main.offers.day IS 'Day of the capture (UTC).';
COMMENT ON COLUMN main.offers.source IS 'Key into sources.';
COMMENT ON COLUMN main.offers.provider IS 'Who rents the machine out.';
COMMENT ON COLUMN main.offers.raw_label IS 'The GPU or machine in the source''s own words.';
COMMENT ON COLUMN main.offers.instance_type IS 'The source''s own name of the machine; null where it sells GPUs and not machines.';
COMMENT ON COLUMN main.offers.gpu_id IS 'Key into gpus; null unless match_status is matched.';
COMMENT ON COLUMN main.offers.match_status IS 'Whether the label says for sure which GPU it is: matched, ambiguous or unknown.';
COMMENT ON COLUMN main.offers.match_rule IS 'The rule that identified the GPU.';
COMMENT ON COLUMN main.offers.match_confidence IS 'How sure the match is: certain, or usual where sellers mean the usual card of the name; none without a match.';
COMMENT ON COLUMN main.offers.candidates IS 'What an ambiguous label could be.';
COMMENT ON COLUMN main.offers.gpu_count IS 'GPUs of the whole offer; a fraction for a slice.';
COMMENT ON COLUMN main.offers.size_evidence IS 'How it is known that a machine of so many GPUs is sold: offered (the answer lists it), catalogued (machine_sizes has it) or assumed.';
COMMENT ON COLUMN main.offers.gpu_counts IS 'Numbers of GPUs in which the answer says that a price for one GPU is rented as one machine; null where it does not say.';
COMMENT ON COLUMN main.offers.price_kind IS 'on_demand, flex_start (starts when there is capacity, is not interrupted, limited in time), spot (may be interrupted), reserved (for a term) or serverless (per second, host charged separately).';
COMMENT ON COLUMN main.offers.term_days IS 'Length of a reserved term in days.';
COMMENT ON COLUMN main.offers.region IS 'Where the machine is, in the source''s words.';
COMMENT ON COLUMN main.offers.country IS 'Country of the machine (ISO 3166-1 alpha-2); null where the source does not say.';
COMMENT ON COLUMN main.offers.continent IS 'Its continent: africa, antarctica, asia, europe, north_america, oceania or south_america; also where only the continent is said.';
COMMENT ON COLUMN main.offers.usd_per_hour IS 'USD per hour of the whole offer, without taxes; null without an exchange rate.';
COMMENT ON COLUMN main.offers.usd_per_gpu_hour IS 'USD per GPU and hour, without taxes; null without an exchange rate.';
COMMENT ON COLUMN main.offers.native_price IS 'The price as the source writes it.';
COMMENT ON COLUMN main.offers.native_currency IS 'Currency of native_price (ISO 4217).';
COMMENT ON COLUMN main.offers.native_unit IS 'What native_price is per: gpu_second, gpu_minute, gpu_hour, gpu_month, instance_second, instance_minute, instance_hour, instance_month, instance_term; an instance is the whole offer, a term all of term_days.';
COMMENT ON COLUMN main.offers.billing_increment_seconds IS 'Running time is charged in steps of this many seconds.';
COMMENT ON COLUMN main.offers.minimum_seconds IS 'Shortest running time that is charged, in seconds.';
COMMENT ON COLUMN main.offers.max_run_hours IS 'Longest time in hours that the machine runs at a stretch; null without a stated limit.';
COMMENT ON COLUMN main.offers.min_gpu_count IS 'Fewest GPUs that can be rented.';
COMMENT ON COLUMN main.offers.available IS 'Whether it could be rented when it was read.';
COMMENT ON COLUMN main.offers.tier IS 'secure, community, marketplace and the like.';
COMMENT ON COLUMN main.offers.tier_class IS 'What kind of renting tier is: dedicated (the provider''s own machines), community (private owners'' machines at the provider''s price), marketplace (each owner sets a price) or serverless.';
COMMENT ON COLUMN main.offers.interconnect IS 'Fabric between machines.';
COMMENT ON COLUMN main.offers.node_network_gbps IS 'Network of one machine in 10^9 bits per second.';
COMMENT ON COLUMN main.offers.max_nodes IS 'Most machines that can be rented as one cluster.';
COMMENT ON COLUMN main.offers.vcpus IS 'Virtual CPUs of the whole offer.';
COMMENT ON COLUMN main.offers.ram_gib IS 'Host memory of the whole offer in GiB.';
COMMENT ON COLUMN main.offers.local_disk_gb IS 'Local disk in the price, in GB.';
COMMENT ON COLUMN main.offers.storage_usd_per_gb_month IS 'Disk in USD per GB and month.';
COMMENT ON COLUMN main.offers.egress_usd_per_gb IS 'Data leaving the cloud in USD per GB.';
COMMENT ON COLUMN main.offers.download_usd_per_gb IS 'Data coming into the cloud in USD per GB.';
COMMENT ON COLUMN main.offers.reliability IS 'Share of time that the host was up, as the source states it.';
COMMENT ON COLUMN main.offers.fx_rate IS 'USD for one unit of native_currency; null for USD.';
COMMENT ON COLUMN main.offers.fx_date IS 'Day of that rate.';
COMMENT ON COLUMN main.offers.effective_from IS 'First day of a price announced ahead.';
COMMENT ON COLUMN main.offers.flag_reason IS 'Why a readable price is in doubt, so it is not ranked: coming_soon, conflicting_prices, cpu_and_memory_charged_extra, custom_quote, disk_not_priced, flex_start_above_on_demand, host_deverified, imported, local_ssd_not_priced, longer_term_dearer, older_gpu_dearer, one_price_for_all, parts_priced_apart, prepaid_time, reserved_at_on_demand_price, reserved_not_below_on_demand, restricted_region, several_effective_dates, spot_not_below_on_demand, spot_price_floor, starting_price, starting_price_of_an_unstated_term, superseded, uneven_prices, unstated_term.';
COMMENT ON COLUMN main.offers.observed_at IS 'When the answer was captured (UTC).';
COMMENT ON COLUMN main.offers.source_url IS 'Where it was read.';
COMMENT ON COLUMN main.offers.capture_sha256 IS 'Hash of the archived answer.';
