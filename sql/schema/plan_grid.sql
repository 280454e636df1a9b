CREATE TABLE main.plan_grid (
    model VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    seq_len INTEGER NOT NULL,
    lora_rank INTEGER,
    lora_targets VARCHAR,
    gpu_id VARCHAR NOT NULL,
    gpu_count INTEGER NOT NULL,
    node_count INTEGER NOT NULL,
    node_network_gbps DOUBLE,
    micro_batch INTEGER NOT NULL,
    grad_accum INTEGER NOT NULL,
    checkpointing VARCHAR NOT NULL,
    sharding VARCHAR NOT NULL,
    quantization VARCHAR NOT NULL,
    optimizer VARCHAR NOT NULL,
    training_precision VARCHAR NOT NULL,
    stack VARCHAR NOT NULL,
    memory_gib DOUBLE NOT NULL,
    needed_gib DOUBLE NOT NULL,
    usable_memory_gib DOUBLE NOT NULL,
    memory_low_ratio DOUBLE NOT NULL,
    memory_high_ratio DOUBLE NOT NULL,
    tokens_per_second_per_gpu DOUBLE NOT NULL,
    speed_low_ratio DOUBLE NOT NULL,
    speed_high_ratio DOUBLE NOT NULL,
    bottleneck VARCHAR NOT NULL,
    evidence VARCHAR NOT NULL,
    evidence_run VARCHAR,
    assumptions VARCHAR NOT NULL,
    training_state_gib DOUBLE NOT NULL,
    result_gib DOUBLE NOT NULL,
    model_download_gib DOUBLE NOT NULL
);

COMMENT ON TABLE main.plan_grid IS 'Plans computed ahead for jobs that are no workloads: every model of the catalogue, full, LoRA and QLoRA (rank 16), sequences of 2048 and 4096 tokens, all other settings left open. Computed model by model after a publication and published by the next, so a new file may have few of them or none; those that do not fit are left out. Rows are narrow: bands, verdict and P(fits) follow from them by the macro grid_plans, which gives them beside plans.';
COMMENT ON COLUMN main.plan_grid.model IS 'Key into models.';
COMMENT ON COLUMN main.plan_grid.method IS 'full, lora or qlora; pretrain is never planned ahead.';
COMMENT ON COLUMN main.plan_grid.seq_len IS 'Tokens of one packed sequence.';
COMMENT ON COLUMN main.plan_grid.lora_rank IS 'Rank of the adapters; null where there are none.';
COMMENT ON COLUMN main.plan_grid.lora_targets IS 'Layers with adapters, joined by +.';
COMMENT ON COLUMN main.plan_grid.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.plan_grid.gpu_count IS 'GPUs of the job.';
COMMENT ON COLUMN main.plan_grid.node_count IS 'Machines that these GPUs are in.';
COMMENT ON COLUMN main.plan_grid.node_network_gbps IS 'Network of one machine that the speed is for, in 10^9 bits per second; null on one machine.';
COMMENT ON COLUMN main.plan_grid.micro_batch IS 'Sequences per GPU and micro-step.';
COMMENT ON COLUMN main.plan_grid.grad_accum IS 'Micro-steps per optimizer step.';
COMMENT ON COLUMN main.plan_grid.checkpointing IS 'Activation checkpointing: none, sac (selective) or full.';
COMMENT ON COLUMN main.plan_grid.sharding IS 'How the job is spread over GPUs: none, ddp, zero2 or fsdp.';
COMMENT ON COLUMN main.plan_grid.quantization IS 'Form of the frozen weights: none, nf4, nf4dq, gptq or int8.';
COMMENT ON COLUMN main.plan_grid.optimizer IS 'Optimizer.';
COMMENT ON COLUMN main.plan_grid.training_precision IS 'Number format: bf16, amp (fp32 master weights), fp16 or fp32.';
COMMENT ON COLUMN main.plan_grid.stack IS 'Training software that the speed is for.';
COMMENT ON COLUMN main.plan_grid.memory_gib IS 'Peak memory of the process per GPU in GiB.';
COMMENT ON COLUMN main.plan_grid.needed_gib IS 'Memory without which the job dies, in GiB per GPU.';
COMMENT ON COLUMN main.plan_grid.usable_memory_gib IS 'Memory of the GPU available to a program, in GiB.';
COMMENT ON COLUMN main.plan_grid.memory_low_ratio IS 'Low end of the band of memory (p10), as a ratio to the estimate.';
COMMENT ON COLUMN main.plan_grid.memory_high_ratio IS 'High end of the band of memory (p90), as a ratio to the estimate.';
COMMENT ON COLUMN main.plan_grid.tokens_per_second_per_gpu IS 'Speed per GPU in tokens per second.';
COMMENT ON COLUMN main.plan_grid.speed_low_ratio IS 'Slow end of the band of speed (p10), as a ratio to the estimate.';
COMMENT ON COLUMN main.plan_grid.speed_high_ratio IS 'Fast end of the band of speed (p90), as a ratio to the estimate.';
COMMENT ON COLUMN main.plan_grid.bottleneck IS 'What takes most of the time.';
COMMENT ON COLUMN main.plan_grid.evidence IS 'How near the plan is a measured speed: measured, interpolated or extrapolated.';
COMMENT ON COLUMN main.plan_grid.evidence_run IS 'The closest published run, key into measured_runs.';
COMMENT ON COLUMN main.plan_grid.assumptions IS 'Values taken for settings that the job leaves open, by name: a JSON object, such as {"lora_rank":16,"lora_targets":"all_linear"}. is_packed: no token is padding.';
COMMENT ON COLUMN main.plan_grid.training_state_gib IS 'Size of a checkpoint from which training can resume, in GiB.';
COMMENT ON COLUMN main.plan_grid.result_gib IS 'Size of the trained weights or adapters, in GiB.';
COMMENT ON COLUMN main.plan_grid.model_download_gib IS 'Size of the weights to start from, in GiB.';
