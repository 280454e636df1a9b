CREATE TABLE main.vram_requirements (
    model VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    seq_len INTEGER NOT NULL,
    lora_rank INTEGER,
    params_billion DOUBLE NOT NULL,
    least_memory_gib DOUBLE,
    least_memory_gib_low DOUBLE,
    least_memory_gib_high DOUBLE,
    settings VARCHAR,
    minimum_gpu_id VARCHAR,
    minimum_memory_gb DOUBLE,
    minimum_fit_probability DOUBLE,
    recommended_gpu_id VARCHAR,
    recommended_memory_gb DOUBLE,
    fewest_gpus INTEGER,
    fewest_gpus_gpu_id VARCHAR,
    fewest_a100_80gb INTEGER,
    fewest_h100_80gb INTEGER,
    fewest_h200_141gb INTEGER,
    fewest_rtx_4090 INTEGER
);

COMMENT ON TABLE main.vram_requirements IS 'Memory that a model and method needs, and the smallest GPUs that have it, of those that some source has ever priced, without offloading weights to host memory: for each model, method, sequence length and adapter rank of the workloads.';
COMMENT ON COLUMN main.vram_requirements.model IS 'Key into models.';
COMMENT ON COLUMN main.vram_requirements.method IS 'full, lora, qlora or pretrain.';
COMMENT ON COLUMN main.vram_requirements.seq_len IS 'Tokens of one packed sequence.';
COMMENT ON COLUMN main.vram_requirements.lora_rank IS 'Rank of the adapters; null where there are none.';
COMMENT ON COLUMN main.vram_requirements.params_billion IS 'Parameters in billions.';
COMMENT ON COLUMN main.vram_requirements.least_memory_gib IS 'Peak memory on one GPU with the settings that need least, in GiB; where the job fits even on the smallest planned card, the settings that are fastest there.';
COMMENT ON COLUMN main.vram_requirements.least_memory_gib_low IS 'Low end of its band (p10).';
COMMENT ON COLUMN main.vram_requirements.least_memory_gib_high IS 'High end of its band (p90).';
COMMENT ON COLUMN main.vram_requirements.settings IS 'The settings that least_memory_gib is of, in words. Other optimizers and precisions need more or less: fits and cheapest_for take them.';
COMMENT ON COLUMN main.vram_requirements.minimum_gpu_id IS 'The smallest card that fits: with least memory of those on which it runs alone, likelier than not (minimum_fit_probability); of several the likeliest. Null where it needs several GPUs.';
COMMENT ON COLUMN main.vram_requirements.minimum_memory_gb IS 'Nominal memory of that card in GB.';
COMMENT ON COLUMN main.vram_requirements.minimum_fit_probability IS 'P(fits) there.';
COMMENT ON COLUMN main.vram_requirements.recommended_gpu_id IS 'The card with least memory on which it runs alone with room to spare.';
COMMENT ON COLUMN main.vram_requirements.recommended_memory_gb IS 'Nominal memory of that card in GB.';
COMMENT ON COLUMN main.vram_requirements.fewest_gpus IS 'Fewest GPUs of any planned kind on which it fits.';
COMMENT ON COLUMN main.vram_requirements.fewest_gpus_gpu_id IS 'The card with least memory for that number.';
COMMENT ON COLUMN main.vram_requirements.fewest_a100_80gb IS 'Fewest A100 SXM 80 GB in one machine on which it fits; null where 8 are not enough.';
COMMENT ON COLUMN main.vram_requirements.fewest_h100_80gb IS 'Fewest H100 SXM 80 GB in one machine on which it fits; null where 8 are not enough.';
COMMENT ON COLUMN main.vram_requirements.fewest_h200_141gb IS 'Fewest H200 SXM 141 GB in one machine on which it fits; null where 8 are not enough.';
COMMENT ON COLUMN main.vram_requirements.fewest_rtx_4090 IS 'Fewest RTX 4090 in one machine on which it fits; null where 8 are not enough.';
