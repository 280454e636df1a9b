CREATE TABLE main.plans (
    model VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    seq_len INTEGER NOT NULL,
    lora_rank INTEGER,
    lora_targets VARCHAR,
    gpu_id VARCHAR NOT NULL,
    gpu_count INTEGER NOT NULL,
    node_count INTEGER NOT NULL,
    node_network_gbps DOUBLE,
    micro_batch INTEGER,
    grad_accum INTEGER,
    checkpointing VARCHAR,
    sharding VARCHAR,
    offload VARCHAR,
    quantization VARCHAR,
    optimizer VARCHAR,
    training_precision VARCHAR,
    stack VARCHAR,
    memory_gib DOUBLE,
    memory_gib_low DOUBLE,
    memory_gib_high DOUBLE,
    usable_memory_gib DOUBLE,
    memory_margin_gib DOUBLE,
    verdict VARCHAR NOT NULL CHECK (verdict IN ('fits', 'tight', 'does_not_fit')),
    fit_probability DOUBLE CHECK (fit_probability BETWEEN 0 AND 1),
    tokens_per_second DOUBLE,
    tokens_per_second_low DOUBLE,
    tokens_per_second_high DOUBLE,
    tokens_per_second_per_gpu DOUBLE,
    bottleneck VARCHAR,
    evidence VARCHAR,
    evidence_run VARCHAR,
    assumptions VARCHAR,
    infeasible_reason VARCHAR,
    peak_phase VARCHAR,
    weights_gib DOUBLE,
    adapter_gib DOUBLE,
    gradients_gib DOUBLE,
    optimizer_gib DOUBLE,
    optimizer_copy_gib DOUBLE,
    activations_gib DOUBLE,
    working_set_gib DOUBLE,
    logits_gib DOUBLE,
    fsdp_units_gib DOUBLE,
    fragmentation_gib DOUBLE,
    overhead_gib DOUBLE,
    matmul_seconds DOUBLE,
    attention_seconds DOUBLE,
    traffic_seconds DOUBLE,
    logits_seconds DOUBLE,
    dequantization_seconds DOUBLE,
    host_seconds DOUBLE,
    communication_seconds DOUBLE,
    offload_seconds DOUBLE,
    optimizer_seconds DOUBLE,
    overhead_seconds DOUBLE,
    micro_step_seconds DOUBLE,
    training_state_gib DOUBLE,
    result_gib DOUBLE,
    model_download_gib DOUBLE
);

COMMENT ON TABLE main.plans IS 'What fits where, and how fast: one row per model, method, sequence length, adapter rank, GPU and number of GPUs, with the settings that finish soonest there. Memory and time are given term by term. Does not depend on prices.';
COMMENT ON COLUMN main.plans.model IS 'Key into models.';
COMMENT ON COLUMN main.plans.method IS 'full, lora, qlora or pretrain.';
COMMENT ON COLUMN main.plans.seq_len IS 'Tokens of one packed sequence.';
COMMENT ON COLUMN main.plans.lora_rank IS 'Rank of the adapters; null where there are none.';
COMMENT ON COLUMN main.plans.lora_targets IS 'Layers with adapters, joined by +.';
COMMENT ON COLUMN main.plans.gpu_id IS 'Key into gpus.';
COMMENT ON COLUMN main.plans.gpu_count IS 'GPUs of the job.';
COMMENT ON COLUMN main.plans.node_count IS 'Machines that these GPUs are in.';
COMMENT ON COLUMN main.plans.node_network_gbps IS 'Network of one machine that the speed is for, in 10^9 bits per second; null on one machine.';
COMMENT ON COLUMN main.plans.micro_batch IS 'Sequences per GPU and micro-step.';
COMMENT ON COLUMN main.plans.grad_accum IS 'Micro-steps per optimizer step.';
COMMENT ON COLUMN main.plans.checkpointing IS 'Activation checkpointing: none, sac (selective) or full.';
COMMENT ON COLUMN main.plans.sharding IS 'How the job is spread over GPUs: none, ddp, zero2 or fsdp.';
COMMENT ON COLUMN main.plans.offload IS 'What is kept in host memory: empty for nothing, cpu for weights and, where they are trained, optimizer.';
COMMENT ON COLUMN main.plans.quantization IS 'Form of the frozen weights: none, nf4, nf4dq, gptq or int8.';
COMMENT ON COLUMN main.plans.optimizer IS 'Optimizer.';
COMMENT ON COLUMN main.plans.training_precision IS 'Number format: bf16, amp (fp32 master weights), fp16 or fp32.';
COMMENT ON COLUMN main.plans.stack IS 'Training software that the speed is for.';
COMMENT ON COLUMN main.plans.memory_gib IS 'Peak memory of the process per GPU in GiB.';
COMMENT ON COLUMN main.plans.memory_gib_low IS 'Low end of its band (p10).';
COMMENT ON COLUMN main.plans.memory_gib_high IS 'High end of its band (p90).';
COMMENT ON COLUMN main.plans.usable_memory_gib IS 'Memory of the GPU available to a program, in GiB.';
COMMENT ON COLUMN main.plans.memory_margin_gib IS 'Usable memory left after what the job needs at least, in GiB; negative where it does not fit.';
COMMENT ON COLUMN main.plans.verdict IS 'fits (P(fits) of at least 90%), tight (estimated to fit, with less), or does_not_fit (estimated to need more than is usable, or the GPU cannot run it).';
COMMENT ON COLUMN main.plans.fit_probability IS 'P(fits): probability that the job runs without running out of memory, from the error of the memory estimate on held-out runs (macro fit_probability). Settings that reach 90% are preferred to faster ones; below 90% none does, and this is the likeliest.';
COMMENT ON COLUMN main.plans.tokens_per_second IS 'Speed of all GPUs together in tokens per second.';
COMMENT ON COLUMN main.plans.tokens_per_second_low IS 'Slow end of its band (p10).';
COMMENT ON COLUMN main.plans.tokens_per_second_high IS 'Fast end of its band (p90).';
COMMENT ON COLUMN main.plans.tokens_per_second_per_gpu IS 'Speed per GPU in tokens per second.';
COMMENT ON COLUMN main.plans.bottleneck IS 'What takes most of the time.';
COMMENT ON COLUMN main.plans.evidence IS 'How near the plan is a measured speed: measured, interpolated or extrapolated.';
COMMENT ON COLUMN main.plans.evidence_run IS 'The closest published run, key into measured_runs.';
COMMENT ON COLUMN main.plans.assumptions IS 'Values taken for settings that the job leaves open, by name: a JSON object, such as {"lora_rank":16,"lora_targets":"all_linear"}. is_packed: no token is padding.';
COMMENT ON COLUMN main.plans.infeasible_reason IS 'Why it does not fit: too_little_memory, unsupported_architecture (by current frameworks), no_fp8, no_bf16 (on this GPU) or no_4bit_kernels (for this vendor); null where it does.';
COMMENT ON COLUMN main.plans.peak_phase IS 'Phase of a step in which memory peaks.';
COMMENT ON COLUMN main.plans.weights_gib IS 'Weights on the GPU, in GiB.';
COMMENT ON COLUMN main.plans.adapter_gib IS 'Adapters, in GiB.';
COMMENT ON COLUMN main.plans.gradients_gib IS 'Gradients, in GiB.';
COMMENT ON COLUMN main.plans.optimizer_gib IS 'Optimizer states, in GiB.';
COMMENT ON COLUMN main.plans.optimizer_copy_gib IS 'Copy of the trained weights that the optimizer makes at its step, in GiB.';
COMMENT ON COLUMN main.plans.activations_gib IS 'Activations stored for the backward pass, in GiB.';
COMMENT ON COLUMN main.plans.working_set_gib IS 'Working memory of one layer, in GiB.';
COMMENT ON COLUMN main.plans.logits_gib IS 'Logits and their gradients, in GiB.';
COMMENT ON COLUMN main.plans.fsdp_units_gib IS 'Gathered layers under FSDP, in GiB.';
COMMENT ON COLUMN main.plans.fragmentation_gib IS 'Memory reserved beyond what is in use, in GiB.';
COMMENT ON COLUMN main.plans.overhead_gib IS 'Memory of the process itself (CUDA context and libraries), in GiB.';
COMMENT ON COLUMN main.plans.matmul_seconds IS 'Matrix products of one micro-step, in seconds.';
COMMENT ON COLUMN main.plans.attention_seconds IS 'Attention of one micro-step, in seconds.';
COMMENT ON COLUMN main.plans.traffic_seconds IS 'Element-wise memory traffic of one micro-step, in seconds.';
COMMENT ON COLUMN main.plans.logits_seconds IS 'Logits and loss of one micro-step, in seconds.';
COMMENT ON COLUMN main.plans.dequantization_seconds IS 'Unpacking quantized weights in one micro-step, in seconds.';
COMMENT ON COLUMN main.plans.host_seconds IS 'Time that the GPU waits for the host in one micro-step, in seconds.';
COMMENT ON COLUMN main.plans.communication_seconds IS 'Exposed communication of one micro-step, in seconds.';
COMMENT ON COLUMN main.plans.offload_seconds IS 'Transfers to and from host memory in one micro-step, in seconds.';
COMMENT ON COLUMN main.plans.optimizer_seconds IS 'The optimizer step''s share of one micro-step, in seconds.';
COMMENT ON COLUMN main.plans.overhead_seconds IS 'Fixed cost of a step, per micro-step, in seconds.';
COMMENT ON COLUMN main.plans.micro_step_seconds IS 'One micro-step, in seconds.';
COMMENT ON COLUMN main.plans.training_state_gib IS 'Size of a checkpoint from which training can resume, in GiB.';
COMMENT ON COLUMN main.plans.result_gib IS 'Size of the trained weights or adapters, in GiB.';
COMMENT ON COLUMN main.plans.model_download_gib IS 'Size of the weights to start from, in GiB; 0 when trained from scratch.';
