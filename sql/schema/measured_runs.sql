CREATE TABLE main.measured_runs (
    run_id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    tier VARCHAR,
    model VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    gpu_count INTEGER,
    node_count INTEGER,
    node_network_gbps DOUBLE,
    method VARCHAR,
    quantization VARCHAR,
    kbit_upcast INTEGER,
    autocast INTEGER,
    lora_rank INTEGER,
    lora_targets VARCHAR,
    lora_dropout DOUBLE,
    adapter_bytes DOUBLE,
    training_precision VARCHAR,
    weight_bytes DOUBLE,
    fp8 INTEGER,
    optimizer VARCHAR,
    sharding VARCHAR,
    tensor_parallel INTEGER,
    pipeline_parallel INTEGER,
    context_parallel INTEGER,
    expert_parallel INTEGER,
    micro_batch DOUBLE,
    seq_len INTEGER,
    grad_accum DOUBLE,
    checkpointing VARCHAR,
    flash_attention INTEGER,
    stack VARCHAR,
    loss_kernel VARCHAR,
    offload VARCHAR,
    memory_metric VARCHAR,
    measured_memory_gib DOUBLE,
    out_of_memory INTEGER,
    measured_tokens_per_second_per_gpu DOUBLE
);

COMMENT ON TABLE main.measured_runs IS 'Published measurements of training runs that the model is calibrated on. None of them is ours.';
COMMENT ON COLUMN main.measured_runs.run_id IS 'Key.';
COMMENT ON COLUMN main.measured_runs.source IS 'Key into measured_sources: who published it, and where.';
COMMENT ON COLUMN main.measured_runs.tier IS 'Trust: the model is calibrated on A and B.';
COMMENT ON COLUMN main.measured_runs.model IS 'Key into models.';
COMMENT ON COLUMN main.measured_runs.gpu IS 'Key into gpus.';
COMMENT ON COLUMN main.measured_runs.gpu_count IS 'GPUs of the run.';
COMMENT ON COLUMN main.measured_runs.node_count IS 'Machines of the run.';
COMMENT ON COLUMN main.measured_runs.node_network_gbps IS 'Network of one machine in 10^9 bits per second.';
COMMENT ON COLUMN main.measured_runs.method IS 'full, lora, qlora or pretrain.';
COMMENT ON COLUMN main.measured_runs.quantization IS 'Form of the frozen weights.';
COMMENT ON COLUMN main.measured_runs.kbit_upcast IS '1 where norms and embeddings were upcast to fp32 before k-bit training.';
COMMENT ON COLUMN main.measured_runs.autocast IS '1 where autocast chose the types of the products of adapters and frozen weights, 0 where they ran in the types of the tensors.';
COMMENT ON COLUMN main.measured_runs.lora_rank IS 'Rank of the adapters.';
COMMENT ON COLUMN main.measured_runs.lora_targets IS 'Adapted modules, joined by +.';
COMMENT ON COLUMN main.measured_runs.lora_dropout IS 'Dropout of the adapters'' inputs, a share; null where it is not known.';
COMMENT ON COLUMN main.measured_runs.adapter_bytes IS 'Bytes per adapter parameter.';
COMMENT ON COLUMN main.measured_runs.training_precision IS 'bf16 (pure), amp (fp32 master weights), deepspeed_bf16, fp16 or fp32.';
COMMENT ON COLUMN main.measured_runs.weight_bytes IS 'Bytes per stored weight when not quantized.';
COMMENT ON COLUMN main.measured_runs.fp8 IS '1 where matrix products ran in fp8.';
COMMENT ON COLUMN main.measured_runs.optimizer IS 'Optimizer.';
COMMENT ON COLUMN main.measured_runs.sharding IS 'none, ddp, zero2, zero3 or fsdp.';
COMMENT ON COLUMN main.measured_runs.tensor_parallel IS 'Size of a tensor-parallel group.';
COMMENT ON COLUMN main.measured_runs.pipeline_parallel IS 'Size of a pipeline-parallel group.';
COMMENT ON COLUMN main.measured_runs.context_parallel IS 'GPUs that share the tokens of each sequence.';
COMMENT ON COLUMN main.measured_runs.expert_parallel IS 'GPUs that share the experts of each layer; they are among the data-parallel ones.';
COMMENT ON COLUMN main.measured_runs.micro_batch IS 'Sequences per GPU and step.';
COMMENT ON COLUMN main.measured_runs.seq_len IS 'Tokens of one sequence.';
COMMENT ON COLUMN main.measured_runs.grad_accum IS 'Micro-steps per optimizer step.';
COMMENT ON COLUMN main.measured_runs.checkpointing IS 'Activation checkpointing: none, sac (selective) or full.';
COMMENT ON COLUMN main.measured_runs.flash_attention IS '1 where attention scores are never stored, 2 where by kernels that the vendor writes for each generation (cuDNN); 0 where they are.';
COMMENT ON COLUMN main.measured_runs.stack IS 'Training software.';
COMMENT ON COLUMN main.measured_runs.loss_kernel IS 'How logits and loss were computed.';
COMMENT ON COLUMN main.measured_runs.offload IS 'What was kept in host memory.';
COMMENT ON COLUMN main.measured_runs.memory_metric IS 'Which memory was measured: alloc, reserved or smi.';
COMMENT ON COLUMN main.measured_runs.measured_memory_gib IS 'Peak memory per GPU in GiB.';
COMMENT ON COLUMN main.measured_runs.out_of_memory IS '1 where the run failed out of memory.';
COMMENT ON COLUMN main.measured_runs.measured_tokens_per_second_per_gpu IS 'Tokens of packed sequences per second and GPU.';
