CREATE TABLE main.rentals (
    gpu_id VARCHAR NOT NULL,
    gpu_count INTEGER NOT NULL,
    node_count INTEGER NOT NULL,
    gpus_billed INTEGER NOT NULL CHECK (gpus_billed >= gpu_count),
    size_evidence VARCHAR NOT NULL CHECK (size_evidence IN ('offered', 'catalogued', 'assumed')),
    price_kind VARCHAR NOT NULL,
    term_days INTEGER,
    available BOOLEAN,
    source VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    tier VARCHAR,
    tier_class VARCHAR NOT NULL,
    region VARCHAR,
    country VARCHAR,
    continent VARCHAR,
    instance_type VARCHAR,
    raw_label VARCHAR NOT NULL,
    usd_per_hour DECIMAL(18, 8) NOT NULL,
    host_usd_per_hour DECIMAL(18, 8) NOT NULL,
    billing_increment_seconds INTEGER NOT NULL,
    minimum_seconds INTEGER NOT NULL,
    max_run_hours DOUBLE,
    storage_usd_per_gb_month DECIMAL(18, 8) NOT NULL,
    egress_usd_per_gb DECIMAL(18, 8) NOT NULL,
    download_usd_per_gb DECIMAL(18, 8) NOT NULL,
    local_disk_gb DOUBLE NOT NULL,
    node_network_gbps DOUBLE,
    vcpus DOUBLE,
    ram_gib DOUBLE,
    host_ram_gib DOUBLE,
    setup_seconds DOUBLE NOT NULL,
    image_gb DOUBLE NOT NULL,
    download_gb_per_second DOUBLE NOT NULL,
    evaluation_share DOUBLE NOT NULL,
    dataset_bytes_per_token DOUBLE NOT NULL,
    checkpoints_kept DOUBLE NOT NULL,
    checkpoint_pause_seconds DOUBLE NOT NULL,
    checkpoint_gb_per_second DOUBLE NOT NULL,
    hours_between_failures DOUBLE NOT NULL,
    hours_between_interruptions DOUBLE,
    notice_seconds DOUBLE NOT NULL,
    interruption_wait_seconds DOUBLE NOT NULL,
    capacity_wait_hours DOUBLE,
    persistent_disk BOOLEAN NOT NULL,
    disk_outlives_host BOOLEAN NOT NULL,
    hours_per_month DOUBLE NOT NULL,
    assumptions VARCHAR NOT NULL,
    charged_while_stopped VARCHAR,
    price_day DATE NOT NULL,
    price_age_days INTEGER GENERATED ALWAYS AS (
        coalesce(getvariable('today')::DATE, make_timestamp(epoch_us(now()))::DATE) - price_day
    ) VIRTUAL,
    native_price DECIMAL(18, 8) NOT NULL,
    native_currency VARCHAR NOT NULL,
    native_unit VARCHAR NOT NULL,
    fx_rate DECIMAL(18, 8),
    fx_date DATE,
    observed_at TIMESTAMPTZ NOT NULL,
    source_url VARCHAR NOT NULL,
    capture_sha256 VARCHAR NOT NULL,
    is_undercut BOOLEAN NOT NULL
);

COMMENT ON TABLE main.rentals IS 'What can be rented for a number of GPUs: every ranked offer x every number of GPUs that it can serve, as one machine or one cluster, with the charges that apply. Of offers with the same charges only the cheapest is listed, so that jobs are priced against few rows without losing an answer.';
COMMENT ON COLUMN main.rentals.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.rentals.gpu_count IS 'GPUs that the job uses.';
COMMENT ON COLUMN main.rentals.node_count IS 'Machines that it runs on.';
COMMENT ON COLUMN main.rentals.gpus_billed IS 'GPUs that are paid for: also idle ones of a machine and those up to a minimum.';
COMMENT ON COLUMN main.rentals.size_evidence IS 'How it is known that this can be rented: offered (the answer lists the machine), catalogued (machine_sizes has the machine, or the network of the cluster) or assumed (neither; only ranked for jobs with assumed_sizes).';
COMMENT ON COLUMN main.rentals.price_kind IS 'on_demand, flex_start, spot, reserved or serverless.';
COMMENT ON COLUMN main.rentals.term_days IS 'Length of a reserved term in days.';
COMMENT ON COLUMN main.rentals.available IS 'True where the source says that it can be had now; null where it does not say. What is sold out is not listed.';
COMMENT ON COLUMN main.rentals.source IS 'Key into sources.';
COMMENT ON COLUMN main.rentals.provider IS 'Provider of the machine.';
COMMENT ON COLUMN main.rentals.tier IS 'secure, community, marketplace and the like.';
COMMENT ON COLUMN main.rentals.tier_class IS 'What kind of renting tier is: dedicated (the provider''s own machines), community (private owners'' machines at the provider''s price), marketplace (each owner sets a price) or serverless.';
COMMENT ON COLUMN main.rentals.region IS 'Location of the machine, in the source''s words.';
COMMENT ON COLUMN main.rentals.country IS 'Country of the machine (ISO 3166-1 alpha-2); null where the source does not say.';
COMMENT ON COLUMN main.rentals.continent IS 'Its continent: africa, antarctica, asia, europe, north_america, oceania or south_america; also where only the continent is said.';
COMMENT ON COLUMN main.rentals.instance_type IS 'The source''s own name of the machine.';
COMMENT ON COLUMN main.rentals.raw_label IS 'The GPU or machine in the source''s own words.';
COMMENT ON COLUMN main.rentals.usd_per_hour IS 'USD per hour of everything rented, without taxes and host charges.';
COMMENT ON COLUMN main.rentals.host_usd_per_hour IS 'USD per hour for CPU and memory that the price does not include.';
COMMENT ON COLUMN main.rentals.billing_increment_seconds IS 'Running time is charged in steps of this many seconds.';
COMMENT ON COLUMN main.rentals.minimum_seconds IS 'Least running time that is charged, in seconds.';
COMMENT ON COLUMN main.rentals.max_run_hours IS 'Longest time in hours that the machine runs at a stretch; null without a stated limit. A job that needs longer is not ranked on it.';
COMMENT ON COLUMN main.rentals.storage_usd_per_gb_month IS 'Disk in USD per GB and month.';
COMMENT ON COLUMN main.rentals.egress_usd_per_gb IS 'Data leaving the cloud in USD per GB.';
COMMENT ON COLUMN main.rentals.download_usd_per_gb IS 'Data entering the cloud in USD per GB.';
COMMENT ON COLUMN main.rentals.local_disk_gb IS 'Local disk in the price, in GB; 0 where none is stated or it is charged apart.';
COMMENT ON COLUMN main.rentals.node_network_gbps IS 'Network of one machine in 10^9 bits per second, as the offer or machine_sizes has it. A plan over several machines is priced only where this is at least the network that it was planned with.';
COMMENT ON COLUMN main.rentals.vcpus IS 'Virtual CPUs of everything rented; null where they are not stated.';
COMMENT ON COLUMN main.rentals.ram_gib IS 'Host memory of everything rented, in GiB; null where it is not stated.';
COMMENT ON COLUMN main.rentals.host_ram_gib IS 'The same; where it is not stated, host_ram_gib_per_gpu_gb of cost_parameters for each GB of GPU memory. What is offloaded must fit in it.';
COMMENT ON COLUMN main.rentals.setup_seconds IS 'From the order to a running machine, without downloads, in seconds.';
COMMENT ON COLUMN main.rentals.image_gb IS 'Container image or environment to download, in GB.';
COMMENT ON COLUMN main.rentals.download_gb_per_second IS 'Download speed in 10^9 bytes per second.';
COMMENT ON COLUMN main.rentals.evaluation_share IS 'Evaluation during and after training, as a share of training time.';
COMMENT ON COLUMN main.rentals.dataset_bytes_per_token IS 'Size of the data set on disk in bytes per token.';
COMMENT ON COLUMN main.rentals.checkpoints_kept IS 'Checkpoints that are on disk at once.';
COMMENT ON COLUMN main.rentals.checkpoint_pause_seconds IS 'Pause of training at each checkpoint besides writing it, in seconds.';
COMMENT ON COLUMN main.rentals.checkpoint_gb_per_second IS 'Speed of writing and reading a checkpoint in 10^9 bytes per second.';
COMMENT ON COLUMN main.rentals.hours_between_failures IS 'Mean hours between failures of one machine with the GPUs that the job uses in it: those of GPUs and host in a data centre, or as often as the host''s reliability implies.';
COMMENT ON COLUMN main.rentals.hours_between_interruptions IS 'Mean hours between interruptions of one spot machine; null for other price kinds.';
COMMENT ON COLUMN main.rentals.notice_seconds IS 'Warning before a spot machine is reclaimed, in seconds; 0 where none is documented. Long enough for a checkpoint, it saves the work since the last one.';
COMMENT ON COLUMN main.rentals.interruption_wait_seconds IS 'Unpaid wait for the next machine after a failure or an interruption, in seconds.';
COMMENT ON COLUMN main.rentals.capacity_wait_hours IS 'Unpaid wait in hours until a flex_start machine starts; null for the other price kinds.';
COMMENT ON COLUMN main.rentals.persistent_disk IS 'A disk of the source outlives a reclaimed machine, so that nothing is downloaded again; false where it is not stated.';
COMMENT ON COLUMN main.rentals.disk_outlives_host IS 'Such a disk outlives the failure of its host, too; on a marketplace it is in the host.';
COMMENT ON COLUMN main.rentals.hours_per_month IS 'Hours that a month''s price is divided by.';
COMMENT ON COLUMN main.rentals.assumptions IS 'Values taken for what the source does not state, by name: a JSON object. Most are of cost_parameters. has_disk_in_price, persistent_disk: false where disk is charged apart, or lost with the machine. gpus_priced_one_by_one: GPUs at a price for one. gpus_per_machine: the size of a machine that nothing says is sold. few_vcpus_per_gpu: which may not feed the GPU. idle_gpus: paid and not used. form_factor_of: the GPU whose form factor is taken.';
COMMENT ON COLUMN main.rentals.charged_while_stopped IS 'What a stopped machine still costs, in words; null where it is not stated.';
COMMENT ON COLUMN main.rentals.price_day IS 'Day of the capture (UTC).';
COMMENT ON COLUMN main.rentals.price_age_days IS 'Days from price_day to today (UTC), whenever the question is asked.';
COMMENT ON COLUMN main.rentals.native_price IS 'The price as the source writes it.';
COMMENT ON COLUMN main.rentals.native_currency IS 'Currency of native_price.';
COMMENT ON COLUMN main.rentals.native_unit IS 'What native_price is for.';
COMMENT ON COLUMN main.rentals.fx_rate IS 'USD for one unit of native_currency; null for USD.';
COMMENT ON COLUMN main.rentals.fx_date IS 'Day of that rate.';
COMMENT ON COLUMN main.rentals.observed_at IS 'When the response was captured (UTC).';
COMMENT ON COLUMN main.rentals.source_url IS 'Address it was read from.';
COMMENT ON COLUMN main.rentals.capture_sha256 IS 'SHA-256 of the archived response.';
COMMENT ON COLUMN main.rentals.is_undercut IS 'Whether the source rents out the same on the same terms for less elsewhere or from another provider: only jobs that ask for a place or a provider are priced on it.';
