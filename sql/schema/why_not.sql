CREATE TABLE main.why_not (
    model VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    seq_len INTEGER NOT NULL,
    lora_rank INTEGER,
    gpu_id VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    fits_from_gpus INTEGER,
    fit_probability DOUBLE,
    least_memory_gib DOUBLE,
    usable_memory_gib DOUBLE,
    needed_gib DOUBLE,
    infeasible_reason VARCHAR
);

COMMENT ON TABLE main.why_not IS 'For each model, method, sequence length and adapter rank of the workloads the GPUs that are in no ranking, with the reason. Deadlines of single workloads are not considered.';
COMMENT ON COLUMN main.why_not.model IS 'Key into models.';
COMMENT ON COLUMN main.why_not.method IS 'full, lora, qlora or pretrain.';
COMMENT ON COLUMN main.why_not.seq_len IS 'Tokens of one packed sequence.';
COMMENT ON COLUMN main.why_not.lora_rank IS 'Rank of the adapters; null where there are none.';
COMMENT ON COLUMN main.why_not.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.why_not.reason IS 'does_not_fit (on no number of GPUs), might_not_fit (with less than 90% on any number of GPUs), no_price (no source has a ranked price) or not_rented_in_that_number (it fits only on numbers of GPUs that no source rents together).';
COMMENT ON COLUMN main.why_not.fits_from_gpus IS 'Fewest GPUs on which it fits with at least 90%; null where it does on none.';
COMMENT ON COLUMN main.why_not.fit_probability IS 'Largest P(fits) over all numbers of GPUs.';
COMMENT ON COLUMN main.why_not.least_memory_gib IS 'Least peak memory per GPU over all numbers of GPUs, in GiB.';
COMMENT ON COLUMN main.why_not.usable_memory_gib IS 'Memory of the GPU available to a program, in GiB.';
COMMENT ON COLUMN main.why_not.needed_gib IS 'Memory per GPU without which a run dies, on the largest number of GPUs, in GiB.';
COMMENT ON COLUMN main.why_not.infeasible_reason IS 'Why it does not fit on any number of GPUs, as in plans; null where it does on some.';
