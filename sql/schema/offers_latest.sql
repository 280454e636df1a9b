CREATE TABLE main.offers_latest (
    day DATE NOT NULL,
    source VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    raw_label VARCHAR NOT NULL,
    instance_type VARCHAR,
    gpu_id VARCHAR,
    match_status VARCHAR NOT NULL,
    match_rule VARCHAR NOT NULL,
    match_confidence VARCHAR,
    candidates VARCHAR,
    gpu_count DOUBLE NOT NULL,
    size_evidence VARCHAR NOT NULL,
    gpu_counts INTEGER[],
    price_kind VARCHAR NOT NULL,
    term_days INTEGER,
    region VARCHAR,
    country VARCHAR,
    continent VARCHAR,
    usd_per_hour DECIMAL(18, 8),
    usd_per_gpu_hour DECIMAL(18, 8),
    native_price DECIMAL(18, 8) NOT NULL,
    native_currency VARCHAR NOT NULL,
    native_unit VARCHAR NOT NULL,
    billing_increment_seconds INTEGER,
    minimum_seconds INTEGER,
    max_run_hours DOUBLE,
    min_gpu_count INTEGER,
    available BOOLEAN,
    tier VARCHAR,
    tier_class VARCHAR NOT NULL,
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
    capture_sha256 VARCHAR NOT NULL,
    age_days INTEGER GENERATED ALWAYS AS (
        coalesce(getvariable('today')::DATE, make_timestamp(epoch_us(now()))::DATE) - day
    ) VIRTUAL,
    stale BOOLEAN NOT NULL,
    ranked BOOLEAN NOT NULL,
    not_ranked_reason VARCHAR
);

COMMENT ON TABLE main.offers_latest IS 'The offers of each source''s last accepted day, with their age and whether rankings use them.';
COMMENT ON COLUMN main.offers_latest.day IS 'Day of the capture (UTC).';
COMMENT ON COLUMN main.offers_latest.source IS 'Key into sources.';
COMMENT ON COLUMN main.offers_latest.provider IS 'Who rents the machine out.';
COMMENT ON COLUMN main.offers_latest.raw_label IS 'The GPU or machine in the source''s own words.';
COMMENT ON COLUMN main.offers_latest.instance_type IS 'The source''s own name of the machine; null where it sells GPUs and not machines.';
COMMENT ON COLUMN main.offers_latest.gpu_id IS 'Key into gpus; null unless match_status is matched.';
COMMENT ON COLUMN main.offers_latest.match_status IS 'Whether the label says for sure which GPU it is: matched, ambiguous or unknown.';
COMMENT ON COLUMN main.offers_latest.match_rule IS 'The rule that identified the GPU.';
COMMENT ON COLUMN main.offers_latest.match_confidence IS 'How sure the match is: certain, or usual where sellers mean the usual card of the name; none without a match.';
COMMENT ON COLUMN main.offers_latest.candidates IS 'What an ambiguous label could be.';
COMMENT ON COLUMN main.offers_latest.gpu_count IS 'GPUs of the whole offer; a fraction for a slice.';
COMMENT ON COLUMN main.offers_latest.size_evidence IS 'How it is known that a machine of so many GPUs is sold: offered (the answer lists it), catalogued (machine_sizes has it) or assumed.';
COMMENT ON COLUMN main.offers_latest.gpu_counts IS 'Numbers of GPUs in which the answer says that a price for one GPU is rented as one machine; null where it does not say.';
COMMENT ON COLUMN main.offers_latest.price_kind IS 'on_demand, flex_start (starts when there is capacity, is not interrupted, limited in time), spot (may be interrupted), reserved (for a term) or serverless (per second, host charged separately).';
COMMENT ON COLUMN main.offers_latest.term_days IS 'Length of a reserved term in days.';
COMMENT ON COLUMN main.offers_latest.region IS 'Where the machine is, in the source''s words.';
COMMENT ON COLUMN main.offers_latest.country IS 'Country of the machine (ISO 3166-1 alpha-2); null where the source does not say.';
COMMENT ON COLUMN main.offers_latest.continent IS 'Its continent: africa, antarctica, asia, europe, north_america, oceania or south_america; also where only the continent is said.';
COMMENT ON COLUMN main.offers_latest.usd_per_hour IS 'USD per hour of the whole offer, without taxes; null without an exchange rate.';
COMMENT ON COLUMN main.offers_latest.usd_per_gpu_hour IS 'USD per GPU and hour, without taxes; null without an exchange rate.';
COMMENT ON COLUMN main.offers_latest.native_price IS 'The price as the source writes it.';
COMMENT ON COLUMN main.offers_latest.native_currency IS 'Currency of native_price (ISO 4217).';
COMMENT ON COLUMN main.offers_latest.native_unit IS 'What native_price is per: gpu_second, gpu_minute, gpu_hour, gpu_month, instance_second, instance_minute, instance_hour, instance_month, instance_term; an instance is the whole offer, a term all of term_days.';
COMMENT ON COLUMN main.offers_latest.billing_increment_seconds IS 'Running time is charged in steps of this many seconds.';
COMMENT ON COLUMN main.offers_latest.minimum_seconds IS 'Shortest running time that is charged, in seconds.';
COMMENT ON COLUMN main.offers_latest.max_run_hours IS 'Longest time in hours that the machine runs at a stretch; null without a stated limit.';
COMMENT ON COLUMN main.offers_latest.min_gpu_count IS 'Fewest GPUs that can be rented.';
COMMENT ON COLUMN main.offers_latest.available IS 'Whether it could be rented when it was read.';
COMMENT ON COLUMN main.offers_latest.tier IS 'secure, community, marketplace and the like.';
COMMENT ON COLUMN main.offers_latest.tier_class IS 'What kind of renting tier is: dedicated (the provider''s own machines), community (private owners'' machines at the provider''s price), marketplace (each owner sets a price) or serverless.';
COMMENT ON COLUMN main.offers_latest.interconnect IS 'Fabric between machines.';
COMMENT ON COLUMN main.offers_latest.node_network_gbps IS 'Network of one machine in 10^9 bits per second.';
COMMENT ON COLUMN main.offers_latest.max_nodes IS 'Most machines that can be rented as one cluster.';
COMMENT ON COLUMN main.offers_latest.vcpus IS 'Virtual CPUs of the whole offer.';
COMMENT ON COLUMN main.offers_latest.ram_gib IS 'Host memory of the whole offer in GiB.';
COMMENT ON COLUMN main.offers_latest.local_disk_gb IS 'Local disk in the price, in GB.';
COMMENT ON COLUMN main.offers_latest.storage_usd_per_gb_month IS 'Disk in USD per GB and month.';
COMMENT ON COLUMN main.offers_latest.egress_usd_per_gb IS 'Data leaving the cloud in USD per GB.';
COMMENT ON COLUMN main.offers_latest.download_usd_per_gb IS 'Data coming into the cloud in USD per GB.';
COMMENT ON COLUMN main.offers_latest.reliability IS 'Share of time that the host was up, as the source states it.';
COMMENT ON COLUMN main.offers_latest.fx_rate IS 'USD for one unit of native_currency; null for USD.';
COMMENT ON COLUMN main.offers_latest.fx_date IS 'Day of that rate.';
COMMENT ON COLUMN main.offers_latest.effective_from IS 'First day of a price announced ahead.';
COMMENT ON COLUMN main.offers_latest.flag_reason IS 'Why a readable price is in doubt, so it is not ranked: coming_soon, conflicting_prices, cpu_and_memory_charged_extra, custom_quote, disk_not_priced, flex_start_above_on_demand, host_deverified, imported, local_ssd_not_priced, longer_term_dearer, older_gpu_dearer, one_price_for_all, parts_priced_apart, prepaid_time, reserved_at_on_demand_price, reserved_not_below_on_demand, restricted_region, several_effective_dates, spot_not_below_on_demand, spot_price_floor, starting_price, starting_price_of_an_unstated_term, superseded, uneven_prices, unstated_term.';
COMMENT ON COLUMN main.offers_latest.observed_at IS 'When the answer was captured (UTC).';
COMMENT ON COLUMN main.offers_latest.source_url IS 'Where it was read.';
COMMENT ON COLUMN main.offers_latest.capture_sha256 IS 'Hash of the archived answer.';
COMMENT ON COLUMN main.offers_latest.age_days IS 'Days from the capture to today (UTC), whenever the question is asked.';
COMMENT ON COLUMN main.offers_latest.stale IS 'Older than the source''s limit on the published day.';
COMMENT ON COLUMN main.offers_latest.ranked IS 'Whether rankings use the offer.';
COMMENT ON COLUMN main.offers_latest.not_ranked_reason IS 'Why rankings do not use it: gpu_not_settled, gpu_slice, impossible_machine (more SXM or OAM cards than one machine holds, and no whole number of machines), network_attached (machine_sizes says that the GPU is reached over a network, which slows training), no_exchange_rate, flagged, not_available, not_yet_in_effect, stale, no_term (a reserved price whose term is not stated), unreliable_host (its reliability is below least_reliability), host_too_small (its stated host memory is less than least_host_ram_gib_per_gpu for each GPU), listed_by_its_provider (an aggregator''s listing of a provider that is also read directly), inference_only (it serves models, and training jobs cannot run on it: serverless_training of sources), price_outlier (more than market_above_factor times the median, or less than one market_below_factor-th of it, over at least market_least_sources other sources, each by its own median, for the same GPU and price kind, or outside of the range of these by more than market_range_factor; marketplaces are compared by their own factors and do not count among the others), source_far_from_market (more than one and more than market_misread_share of the source''s comparable prices are price outliers, or its median card of that price kind is more than market_bias_factor times the others'' median or less than one such part of it) or price_odd_for_its_source (by the others'' medians, the card is dearer or cheaper than the source''s other cards by more than market_own_level_factor). cost_parameters has the numbers.';
