CREATE TABLE main.cheapest_gpu_per_workload (
    day DATE NOT NULL,
    workload VARCHAR NOT NULL,
    price_kind VARCHAR NOT NULL,
    objective VARCHAR NOT NULL CHECK (objective IN ('cost', 'time')),
    rank INTEGER NOT NULL,
    model VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    tokens DOUBLE NOT NULL,
    seq_len INTEGER NOT NULL,
    gpu_id VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    gpu_count INTEGER NOT NULL,
    node_count INTEGER NOT NULL,
    gpus_billed INTEGER NOT NULL,
    size_evidence VARCHAR,
    provider VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    tier VARCHAR,
    tier_class VARCHAR NOT NULL,
    region VARCHAR,
    country VARCHAR,
    continent VARCHAR,
    instance_type VARCHAR,
    raw_label VARCHAR NOT NULL,
    term_days INTEGER,
    available BOOLEAN,
    total_usd DECIMAL(18, 4) NOT NULL,
    total_usd_low DECIMAL(18, 4) NOT NULL,
    total_usd_high DECIMAL(18, 4) NOT NULL,
    hours DOUBLE NOT NULL,
    hours_low DOUBLE NOT NULL,
    hours_high DOUBLE NOT NULL,
    max_hours DOUBLE,
    meets_deadline BOOLEAN,
    longer_wait_usd DECIMAL(18, 4),
    longer_wait_hours DOUBLE,
    longer_wait_way VARCHAR,
    usd_per_million_tokens DOUBLE NOT NULL,
    tokens_per_second DOUBLE NOT NULL,
    tokens_per_second_low DOUBLE NOT NULL,
    tokens_per_second_high DOUBLE NOT NULL,
    bottleneck VARCHAR,
    memory_gib DOUBLE NOT NULL,
    memory_gib_low DOUBLE NOT NULL,
    memory_gib_high DOUBLE NOT NULL,
    usable_memory_gib DOUBLE NOT NULL,
    memory_margin_gib DOUBLE NOT NULL,
    verdict VARCHAR NOT NULL,
    fit_probability DOUBLE,
    micro_batch INTEGER NOT NULL,
    checkpointing VARCHAR NOT NULL,
    sharding VARCHAR NOT NULL,
    offload VARCHAR,
    quantization VARCHAR,
    stack VARCHAR,
    setup_hours DOUBLE NOT NULL,
    train_hours DOUBLE NOT NULL,
    evaluation_hours DOUBLE NOT NULL,
    interruption_hours DOUBLE NOT NULL,
    failure_hours DOUBLE NOT NULL,
    wait_hours DOUBLE NOT NULL,
    interruptions DOUBLE NOT NULL,
    failures DOUBLE NOT NULL,
    checkpoint_interval_minutes DOUBLE,
    billed_hours DOUBLE NOT NULL,
    usd_per_hour DECIMAL(18, 8) NOT NULL,
    host_usd_per_hour DECIMAL(18, 8) NOT NULL,
    usd_per_gpu_hour DOUBLE NOT NULL,
    compute_usd DECIMAL(18, 4) NOT NULL,
    interruption_usd DECIMAL(18, 4) NOT NULL,
    failure_usd DECIMAL(18, 4) NOT NULL,
    storage_gb DOUBLE NOT NULL,
    storage_usd DECIMAL(18, 4) NOT NULL,
    egress_usd DECIMAL(18, 4) NOT NULL,
    commitment_usd DECIMAL(18, 4),
    term_share_used DOUBLE,
    kept_volume_usd_per_month DECIMAL(18, 4) NOT NULL,
    charged_while_stopped VARCHAR,
    native_price DECIMAL(18, 8) NOT NULL,
    native_currency VARCHAR NOT NULL,
    native_unit VARCHAR NOT NULL,
    fx_rate DECIMAL(18, 8),
    fx_date DATE,
    price_day DATE NOT NULL,
    price_age_days INTEGER GENERATED ALWAYS AS (
        coalesce(getvariable('today')::DATE, make_timestamp(epoch_us(now()))::DATE) - price_day
    ) VIRTUAL,
    observed_at TIMESTAMPTZ NOT NULL,
    source_url VARCHAR NOT NULL,
    capture_sha256 VARCHAR NOT NULL,
    evidence VARCHAR NOT NULL,
    evidence_run VARCHAR,
    assumptions VARCHAR NOT NULL
);

COMMENT ON TABLE main.cheapest_gpu_per_workload IS 'For each workload, price kind and objective the ranked ways to run it, in USD per finished job. One row per GPU, number of GPUs, source, tier and term: the best offer there; to ask for some GPUs, providers or places, give them to cheapest_for, since a WHERE finds only what is here. Ranked by total_usd (objective cost) or hours (objective time); ties by the other one, then fewer GPUs, then gpu_id, source, tier, region, instance_type and label in alphabetical order. Money is rounded half away from zero to a hundredth of a cent, term by term, and total_usd is the sum of the rounded terms.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.day IS 'Day of the ranking.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.workload IS 'Key into workloads.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.price_kind IS 'Kind of price ranked: on_demand, flex_start, spot, reserved or serverless, never mixed.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.objective IS 'What the ranking is by: cost or time.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.rank IS '1 is the best.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.model IS 'Key into models.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.method IS 'full, lora, qlora or pretrain.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.tokens IS 'Tokens that pass through the model.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.seq_len IS 'Tokens of one packed sequence.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.gpu IS 'The GPU''s usual name.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.gpu_count IS 'GPUs that the job uses.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.node_count IS 'Machines that it runs on.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.gpus_billed IS 'GPUs that are paid for, idle ones included.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.size_evidence IS 'How it is known that this can be rented: offered (the answer lists the machine) or catalogued (machine_sizes has the machine, or the network of the cluster).';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.provider IS 'Provider of the machine.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.source IS 'Key into sources.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.tier IS 'secure, community, marketplace and the like.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.tier_class IS 'What kind of renting tier is: dedicated (the provider''s own machines), community (private owners'' machines at the provider''s price), marketplace (each owner sets a price) or serverless.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.region IS 'Location of the machine, in the source''s words.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.country IS 'Country of the machine (ISO 3166-1 alpha-2); null where the source does not say.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.continent IS 'Its continent: africa, antarctica, asia, europe, north_america, oceania or south_america; also where only the continent is said.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.instance_type IS 'The source''s own name of the machine.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.raw_label IS 'The GPU or machine in the source''s own words.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.term_days IS 'Length of a reserved term in days.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.available IS 'True where the source says that the machine can be had now; null where it does not say. What is sold out is not ranked.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.total_usd IS 'What is paid for the finished job in USD: compute_usd + interruption_usd + failure_usd + storage_usd + egress_usd. Taxes are not included.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.total_usd_low IS 'The same at the fast end of the speed band.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.total_usd_high IS 'The same at the slow end of the speed band.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.hours IS 'From renting to the finished job: set-up, training, evaluation, and the time lost to failures and interruptions.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.hours_low IS 'The same at the fast end of the speed band.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.hours_high IS 'The same at the slow end of the speed band.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.max_hours IS 'The deadline: hours within which the job is to be finished, of the table workloads or of the question.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.meets_deadline IS 'True where the ranking keeps to max_hours. False for a whole ranking in which nothing does: then it is sorted by hours.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.longer_wait_usd IS 'What the job costs at its cheapest if it may take longer than max_hours; null where waiting saves nothing. The same in all rows of a ranking.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.longer_wait_hours IS 'Hours from renting to the finished job for the cheapest way that takes longer than max_hours; null where waiting saves nothing.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.longer_wait_way IS 'The cheapest way that takes longer than max_hours, a JSON object with gpu_count, gpu, provider and price_kind; null where waiting saves nothing.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.usd_per_million_tokens IS 'total_usd per million tokens.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.tokens_per_second IS 'Speed of all GPUs together in tokens per second.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.tokens_per_second_low IS 'Slow end of its band (p10).';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.tokens_per_second_high IS 'Fast end of its band (p90).';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.bottleneck IS 'What takes most of the time.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.memory_gib IS 'Peak memory per GPU in GiB.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.memory_gib_low IS 'Low end of its band (p10).';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.memory_gib_high IS 'High end of its band (p90).';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.usable_memory_gib IS 'Memory of the GPU available to a program, in GiB.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.memory_margin_gib IS 'Usable memory that is left, in GiB.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.verdict IS 'fits, or tight where less than 90% was asked for.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.fit_probability IS 'P(fits): probability that the job does not run out of memory, at least 90% in the published rankings (min_fit_probability of a question).';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.micro_batch IS 'Sequences per GPU and step.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.checkpointing IS 'Activation checkpointing: none, sac (selective) or full.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.sharding IS 'How the job is spread over GPUs.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.offload IS 'What is kept in host memory: empty for nothing, cpu for weights and, where they are trained, optimizer.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.quantization IS 'Form of the frozen weights.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.stack IS 'Training software that the speed is for.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.setup_hours IS 'Start, image, data set and model download.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.train_hours IS 'tokens / tokens_per_second.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.evaluation_hours IS 'Evaluation, a share of training.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.interruption_hours IS 'Paid hours that interruptions are expected to add to failure_hours; 0 unless spot.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.failure_hours IS 'Paid hours that failures of machines are expected to cost: checkpoints, work done again and restarts.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.wait_hours IS 'Unpaid hours that the job is expected to wait for a new machine after failures and interruptions.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.interruptions IS 'Expected number of interruptions; 0 unless spot.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.failures IS 'Expected number of failures of machines.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.checkpoint_interval_minutes IS 'Minutes between checkpoints that minimize the expected loss; the whole work where it is written only at its end, null where every stop has a notice long enough for one.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.billed_hours IS 'Set-up, training and evaluation, rounded up by the billing step and minimum; for a reservation the whole terms that the job takes.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.usd_per_hour IS 'USD per hour of everything rented.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.host_usd_per_hour IS 'USD per hour for CPU and memory that the price does not include.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.usd_per_gpu_hour IS 'usd_per_hour over gpus_billed.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.compute_usd IS 'billed_hours x (usd_per_hour + host_usd_per_hour); for reserved prices this is all terms of the commitment, do not add commitment_usd.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.interruption_usd IS 'interruption_hours x (usd_per_hour + host_usd_per_hour).';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.failure_usd IS 'failure_hours x (usd_per_hour + host_usd_per_hour); 0 for a reservation, whose term is paid anyway.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.storage_gb IS 'Disk that is charged, in GB: where the local disk in the price is large enough, checkpoints and result, which must outlive the machine.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.storage_usd IS 'Storage cost over hours.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.egress_usd IS 'Uploading the result, and downloading image, data set and model, where traffic is charged.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.commitment_usd IS 'What one reserved term costs, without host charges; compute_usd and total_usd include as many as the job takes, do not add it. Null unless reserved.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.term_share_used IS 'Share of the paid terms that the job uses. Null unless reserved.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.kept_volume_usd_per_month IS 'What keeping the job''s disk costs per month after the job; not in total_usd.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.charged_while_stopped IS 'What a stopped machine still costs at this source, in words; null where it is not stated. Keeping the volume costs kept_volume_usd_per_month.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.native_price IS 'The price as the source writes it.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.native_currency IS 'Currency of native_price.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.native_unit IS 'What native_price is for.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.fx_rate IS 'USD for one unit of native_currency; null for USD.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.fx_date IS 'Day of that rate.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.price_day IS 'Day of the price.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.price_age_days IS 'Days from price_day to today (UTC), whenever the question is asked.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.observed_at IS 'When the price was captured (UTC).';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.source_url IS 'Address it was read from.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.capture_sha256 IS 'SHA-256 of the archived response.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.evidence IS 'Evidence for the plan: measured, interpolated or extrapolated.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.evidence_run IS 'The closest published run.';
COMMENT ON COLUMN main.cheapest_gpu_per_workload.assumptions IS 'Values taken for what the job and the source leave open, by name: a JSON object of the assumptions of plans and rentals, and of a job: unused_settings (given, but not for its method), epochs and tokens_per_epoch, max_context (of the model, where sequences are longer), offers_without_place (left out where a place is asked for), max_hours, ignored_columns, quote and own (the machine as the job names it), host_ram_gib.';
