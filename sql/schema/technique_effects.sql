CREATE TABLE main.technique_effects (
    model VARCHAR NOT NULL,
    gpu_id VARCHAR NOT NULL,
    technique VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    gpu_count INTEGER NOT NULL,
    changed VARCHAR NOT NULL,
    memory_gib_without DOUBLE,
    memory_gib_with DOUBLE,
    memory_saved_share DOUBLE,
    tokens_per_second_per_gpu_without DOUBLE,
    tokens_per_second_per_gpu_with DOUBLE,
    time_cost_share DOUBLE,
    fits_without BOOLEAN,
    fits_with BOOLEAN,
    settings VARCHAR
);

COMMENT ON TABLE main.technique_effects IS 'What each technique saves in memory and costs in time, per model and GPU, all other settings equal: from the same macros as the plans.';
COMMENT ON COLUMN main.technique_effects.model IS 'Key into models.';
COMMENT ON COLUMN main.technique_effects.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.technique_effects.technique IS 'The technique switched on.';
COMMENT ON COLUMN main.technique_effects.method IS 'Method with the technique: full, lora, qlora or pretrain.';
COMMENT ON COLUMN main.technique_effects.gpu_count IS 'GPUs of the comparison.';
COMMENT ON COLUMN main.technique_effects.changed IS 'The setting that changes, from and to.';
COMMENT ON COLUMN main.technique_effects.memory_gib_without IS 'Peak memory per GPU without it, in GiB, whether or not the card has that much.';
COMMENT ON COLUMN main.technique_effects.memory_gib_with IS 'Peak memory per GPU with it, in GiB.';
COMMENT ON COLUMN main.technique_effects.memory_saved_share IS '1 - with / without.';
COMMENT ON COLUMN main.technique_effects.tokens_per_second_per_gpu_without IS 'Speed without it.';
COMMENT ON COLUMN main.technique_effects.tokens_per_second_per_gpu_with IS 'Speed with it.';
COMMENT ON COLUMN main.technique_effects.time_cost_share IS 'Additional time per token; negative where the technique is faster.';
COMMENT ON COLUMN main.technique_effects.fits_without IS 'Whether it fits in usable memory without it.';
COMMENT ON COLUMN main.technique_effects.fits_with IS 'Whether it fits in usable memory with it.';
COMMENT ON COLUMN main.technique_effects.settings IS 'Settings of both sides.';
