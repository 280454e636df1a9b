-- The time of one micro-step, as the sum of the times of its parts.

CREATE OR REPLACE MACRO head_width_rate(width) AS 1.25e0 * width / (width + 32e0);
COMMENT ON FUNCTION head_width_rate IS
    'Rate of fused attention with heads of the given width, relative to heads with a width of 128: 0.83 for a width of 64. Dao 2023, arXiv 2307.08691; Shah et al. 2024, arXiv 2407.08608.';

CREATE OR REPLACE MACRO sustained_watts_per_tflop() AS 1.1e0;
COMMENT ON FUNCTION sustained_watts_per_tflop IS
    'Watts per dense bf16 TFLOP/s below which a card with GDDR memory is assumed not to hold its clocks under a lasting load. L4, L40S and RTX 6000 Ada have 0.6 to 1.0, and train slower than short benchmarks of their matrix products suggest; RTX 4090 and A5000 have more than 2.';

CREATE OR REPLACE MACRO foreach_passes() AS 3e0;
COMMENT ON FUNCTION foreach_passes IS
    'Traffic of an AdamW step in foreach kernels, relative to a fused kernel: one operation after the other reads 13 tensors and writes 8 (_multi_tensor_adamw in torch/optim/adam.py), where the fused kernel reads 4 and writes 3.';

CREATE OR REPLACE MACRO synced_host_share() AS 0.25e0;
COMMENT ON FUNCTION synced_host_share IS
    'Share of the host time that is never hidden in a mixture of experts: before it launches the products, the host waits in each layer for the numbers of tokens per expert (cuda_sync_point in Megatron-LM''s moe/token_dispatcher.py), and the GPU for the host thereafter. Assumed.';

CREATE OR REPLACE MACRO sorting_share(cuda_graph, fp8, architecture) AS
    CASE WHEN cuda_graph = 'step' AND fp8 >= 1 AND architecture LIKE 'Blackwell%' THEN 0.5e0 ELSE 1e0 END;
COMMENT ON FUNCTION sorting_share IS
    'Share of the time for sorting tokens by expert that remains: half in recipes for MXFP8 on Blackwell that capture the whole step, whose kernels fuse the products of experts with activation and quantization (container 26.06 made them 27 to 43% faster, but no faster on H100). Assumed: dispatching tokens still copies them, but nothing else does.';

CREATE OR REPLACE MACRO expert_bias_bytes() AS 28e0;
COMMENT ON FUNCTION expert_bias_bytes IS
    'Bytes that a pass moves per feature of an expert''s output to add the bias, scaled by the probability of the expert, in fp32: the product is written (4), read with the output (4 + 2), the sum is written (4), copied into one tensor (4 + 4) and cast to 16 bits (4 + 2). TEGroupedMLP._apply_bias in Megatron-LM''s moe/experts.py; the backward pass is assumed to move as much.';

CREATE OR REPLACE MACRO dispatch_passes() AS 7e0;
COMMENT ON FUNCTION dispatch_passes IS
    'Number of times that eager code reads or writes the input or the output of a token''s expert besides its products: it copies the input (2), scales it (2), and adds the output to those of the other experts (3). MixtralSparseMoeBlock and Llama4TextMoe in transformers.';

CREATE OR REPLACE MACRO exposed_tensor_share(kernels, is_full, software_date, is_linked) AS
    CASE
        WHEN kernels = 'engine' AND is_full AND is_linked
            AND coalesce(software_date >= DATE '2024-01-01', TRUE)
            THEN 0.5e0
        ELSE 1e0
    END;
COMMENT ON FUNCTION exposed_tensor_share IS
    'Share of the time of tensor parallelism''s collectives that is exposed. is_linked: true if NVLink joins the group. Transformer Engine''s user buffers exchange one part of a tensor while the product of another part runs (tp_comm_overlap in Megatron-Bridge''s docs/performance-guide.md); half is assumed to remain, for the first and last parts and for the multiprocessors that the exchange occupies. Adapters gather the inputs once more (peft/utils.py).';

CREATE OR REPLACE MACRO operation_seconds(forward, backward, recompute_passes, k) AS
    forward * (1e0 + recompute_passes) * k.python_operation_seconds + backward * k.autograd_operation_seconds;
COMMENT ON FUNCTION operation_seconds IS
    'Host time of code with the given numbers of tensor operations in its forward and its backward pass. Python drives the forward pass and its recomputation, and autograd the backward pass. k: a row of constants.';

CREATE OR REPLACE MACRO expert_loop_seconds(
    stack, kernels, is_full, slices_experts, adds_expert_biases, recompute_passes, k
) AS
    CASE
        WHEN stack = 'hf' THEN CASE
            WHEN slices_experts THEN operation_seconds(6e0, 18e0, recompute_passes, k)
            ELSE operation_seconds(18e0, 36e0, recompute_passes, k)
        END
        WHEN kernels = 'engine'
            THEN adds_expert_biases * operation_seconds(2e0, 8e0, recompute_passes, k)
                + is_full::INTEGER * (2 + 2 * adds_expert_biases) * k.expert_tensor_seconds
        ELSE 0e0
    END;
COMMENT ON FUNCTION expert_loop_seconds IS
    'Host time per expert of a rank, layer and micro-step, in code that handles one expert after the other. The operations were counted on the code: Transformers before version 5 loops over the experts (6 operations in GraniteMoeParallelExperts, 18 in MixtralSparseMoeBlock and Qwen2MoeSparseMoeBlock, where newer versions group their products), and Megatron over their biases (2 in TEGroupedMLP._apply_bias). Megatron also handles the gradient of each of their tensors in Python (the hooks of DistributedDataParallel): two weights, and two biases, if any.';

CREATE OR REPLACE MACRO rotary_loop_seconds(recompute_passes, k) AS
    2e0 * operation_seconds(20e0, 19e0, recompute_passes, k);
COMMENT ON FUNCTION rotary_loop_seconds IS
    'Host time per packed sequence, layer and micro-step to apply rotary embeddings to the queries and keys of one sequence after the other, in 20 operations each (_apply_rotary_pos_emb_thd in Megatron-LM''s embeddings/rope_utils.py until August 2026), counted on the code.';

CREATE OR REPLACE MACRO sliced_expert_bytes(slices_experts, is_full, experts, expert_params, weight_bytes) AS
    CASE
        WHEN slices_experts AND is_full THEN 4e0 * experts * expert_params * weight_bytes
        ELSE 0e0
    END;
COMMENT ON FUNCTION sliced_expert_bytes IS
    'Bytes that a backward pass moves for the gradients of experts whose weights are slices of one tensor (slices_experts): the gradient of each slice is written as a tensor of zeros for all experts (1), and added to the sum of those before (3).';

CREATE OR REPLACE MACRO exposed_seconds(work, cover, spread) AS
    -- Two forms of one root, of which each adds two positive numbers: small differences are inexact.
    CASE
        WHEN work > cover THEN (work - cover + sqrt(pow(work - cover, 2) + pow(spread, 2) * work * cover)) / 2
        ELSE coalesce(
            pow(spread, 2) * work * cover
            / nullif(cover - work + sqrt(pow(work - cover, 2) + pow(spread, 2) * work * cover), 0e0) / 2, 0e0
        )
    END;
COMMENT ON FUNCTION exposed_seconds IS
    'Seconds of work that are not hidden behind the cover. If spread is 0, only the work beyond the cover is exposed; otherwise, because both are spread unevenly over a step, a part of the work is exposed although the cover is longer: a quarter of spread^2 under a long cover. spread is at most 2.';

CREATE OR REPLACE MACRO speed_coefficients(settings) AS TABLE
WITH _speed_rates AS (
    SELECT
        s.*,
        coalesce(s.bf16_dense_tflops, s.fp16_dense_tflops) AS dense_16bit_tflops,
        -- Rate of dense 16-bit products of large square matrices: measured if a measurement exists, otherwise
        -- from the watts per datasheet TFLOP/s, capped by most_above_datasheet.
        coalesce(
            s.gemm_bf16_measured_tflops,
            CASE WHEN s.bf16_dense_tflops IS NULL THEN s.gemm_fp16_measured_tflops END,
            dense_16bit_tflops * least(
                most_above_datasheet(),
                gemm_share(s.tdp_w / dense_16bit_tflops, k.gemm_ratio_at_one_watt, k.gemm_ratio_watt_exponent)
                * exp(s.gemm_log_offset)
            )
        ) * 1e12 AS gemm_flops,
        -- The class of a recipe: vendors tune their engines for each generation of GPUs, whereas default
        -- recipes run on all generations.
        s.kernels IN ('engine', 'mosaic') AS is_tuned,
        -- Engines use cuDNN's attention kernels.
        CASE WHEN s.flash_attention = 2 THEN 'engine' ELSE s.kernels END AS attention_kernels,
        -- fp32 products run outside the matrix units, because frameworks leave TF32 off.
        coalesce(s.fp32_tflops, dense_16bit_tflops / 16) * 1e12 * k.fp32_efficiency AS fp32_flops_per_second,
        -- The forward pass and input gradients always count; weight gradients, only if weights are trained.
        CASE WHEN s.is_full THEN 3e0 ELSE 2e0 END AS product_passes,
        least(1e0, s.expert_params * s.experts_active / s.experts / s.linear_active) AS expert_flop_share,
        CASE WHEN s.gpu_year < 2020 THEN k.host_before_2020 ELSE 1e0 END AS host_factor,
        CASE
            WHEN s.peer_to_peer THEN pcie_bytes_per_second(s.pcie_gen) * k.pcie_link_efficiency
            ELSE pcie_bytes_per_second(s.pcie_gen) * k.staged_link_efficiency
        END AS pcie_link_bytes_per_second,
        NOT s.peer_to_peer AS shares_host,
        -- Datasheets add up both directions of NVLink.
        CASE
            WHEN s.peer_to_peer AND s.nvlink_gb_s IS NOT NULL THEN s.nvlink_gb_s / 2 * 1e9 * k.link_efficiency
            ELSE pcie_link_bytes_per_second
        END AS nvlink_bytes_per_second,
        pcie_bytes_per_second(s.pcie_gen) * k.offload_efficiency AS host_bytes_per_second,
        -- The cost of routing and sorting tokens in older engines, relative to the newest.
        CASE WHEN s.kernels = 'engine' THEN exp(s.software_age_years * k.progress_experts) ELSE 1e0 END
            AS expert_overhead,
        k.expert_half_width * expert_overhead / s.intermediate
            * sorting_share(s.cuda_graph, s.fp8, s.architecture) AS expert_width_share,
        -- The kernels of bitsandbytes read a weight, find its value by a tree of comparisons, scale it in
        -- fp32 and write it in 16 bits (dDequantizeNF4 in csrc/kernels.cu): memory or arithmetic limits them.
        -- The matrix product that follows finds in the cache what fits there of one matrix of the MLP.
        greatest(
            (
                s.quantized_bytes + bytes_16bit() * (1 - k.cache_gain * least(1e0, s.cache_bytes / (
                    bytes_16bit() * s.hidden * s.intermediate
                )))
            ) / (memory_bytes_per_second * k.bandwidth_efficiency),
            k.dequantization_operations / (coalesce(s.fp32_tflops, dense_16bit_tflops / 16) * 1e12)
        ) AS dequantized_weight_seconds
    FROM with_work(settings) AS s
),

-- Share of gemm_flops reached in training; in narrower formats, at most narrow_format_share of the peak.
_speed_efficiency AS (
    SELECT
        *,
        gemm_flops * k.gemm_efficiency * pow(
            greatest(1e0, gemm_flops / a100_gemm_flops()),
            CASE WHEN is_tuned THEN 0e0 ELSE k.gemm_exponent END
        )
            * CASE
                WHEN bf16_dense_tflops IS NULL AND training_precision <> 'fp16' THEN k.emulated_bf16_rate
                ELSE 1e0
            END
            -- On other vendors' cards, default recipes use libraries that are not tuned for the card.
            * CASE WHEN vendor <> 'nvidia' AND NOT is_tuned THEN k.default_other_vendor ELSE 1e0 END
            -- Engines still get faster; the products of other stacks come from libraries that have matured.
            * CASE
                WHEN kernels = 'engine' THEN exp(-software_age_years * k.progress)
                ELSE 1e0
            END
            -- Short benchmarks measure products at clocks that cards with little power cannot hold.
            * CASE
                WHEN memory_type LIKE 'GDDR%'
                    THEN pow(
                        least(1e0, tdp_w / bf16_dense_tflops / sustained_watts_per_tflop()),
                        k.sustained_exponent
                    )
                ELSE 1e0
            END
            AS matmul_flops_per_second,
        -- Speed of fused attention on long sequences, relative to matrix products; narrow heads have fewer
        -- products per exponential.
        CASE attention WHEN 'efficient' THEN k.attention_efficient ELSE k.attention_flash END
            * CASE attention_kernels
                WHEN 'engine' THEN k.attention_engine
                WHEN 'mosaic' THEN k.attention_mosaic
                ELSE 1e0
            END
            * CASE WHEN architecture = 'Blackwell Ultra' THEN k.attention_ultra ELSE 1e0 END
            -- Only vendors' kernels fully exploit a new GPU generation; older kernels exploit it least.
            * pow(
                gemm_flops / a100_gemm_flops(),
                k.attention_exponent
                * CASE attention_kernels WHEN 'engine' THEN 0 WHEN 'mosaic' THEN 2 ELSE 1 END
            )
            -- Kernels written for Ampere lack newer instructions, and get no faster on cards beyond Hopper.
            * CASE
                WHEN attention_kernels = 'engine' THEN 1e0
                ELSE pow(least(1e0, h100_gemm_flops() / gemm_flops), 1 + k.attention_exponent)
            END
            * head_width_rate(query_width / heads) AS attention_share,
        matmul_flops_per_second * attention_share AS attention_flops_per_second,
        -- Half-masked blocks, softmax and memory access cost as much as additional tokens would; the faster
        -- the products, the more additional tokens.
        attended_length + k.attention_half_length * attention_share AS attention_length,
        CASE
            WHEN fp8 >= 1 AND fp8_dense_tflops IS NOT NULL THEN least(
                CASE
                    WHEN fp8 = 2 AND fp4_dense_tflops IS NOT NULL
                        -- Scaling under torch.compile takes as large a share of this gain as of that of fp8.
                        THEN 1 + (fp4_dense_tflops / fp8_dense_tflops - 1) * k.fp4_gain
                            * CASE WHEN kernels = 'engine' THEN 1e0 ELSE k.fp8_gain_compiled / k.fp8_gain END
                    ELSE 1e0
                END
                * (
                    1 + (fp8_dense_tflops / dense_16bit_tflops - 1)
                    * CASE WHEN kernels = 'engine' THEN k.fp8_gain ELSE k.fp8_gain_compiled END
                ),
                narrow_format_share() * 1e12
                * CASE
                    WHEN fp8 = 2 THEN coalesce(fp4_dense_tflops, fp8_dense_tflops) ELSE fp8_dense_tflops
                END
                / matmul_flops_per_second
            )
            ELSE 1e0
        END AS fp8_speedup
    FROM _speed_rates
)

-- A multiplication and its addition count as two FLOPs.
SELECT
    *,
    CASE
        WHEN is_counted
            THEN flops_16bit_per_token * (1 + expert_flop_share * expert_width_share)
                / matmul_flops_per_second
                + flops_fp32_per_token / fp32_flops_per_second
        ELSE (
            2e0 * linear_active * (product_passes + recompute_passes)
            -- Tokens are sorted by expert and back again in 16 bits, which slows narrow experts the most.
            * (1 / fp8_speedup + expert_flop_share * expert_width_share)
            + 2e0 * adapter_params / experts * (3e0 + recompute_passes)
        ) / matmul_flops_per_second
    END
    -- The gradients of folded adapters are computed from the gradients of the whole weights.
    + folds_adapters * 2e0 * linear_active * expert_flop_share / matmul_flops_per_second
        AS matmul_seconds_per_token,
    CASE
        WHEN is_counted THEN logit_bytes_per_token / (memory_bytes_per_second * k.bandwidth_efficiency)
        ELSE 2e0 * vocab * hidden * product_passes / matmul_flops_per_second
            + vocab * k.traffic_logits * (k.traffic_logits_fixed + logit_bytes) / memory_bytes_per_second
    END AS logits_seconds_per_token,
    -- The backward pass of flash attention computes five products, and the forward pass two: Dao 2023, arXiv
    -- 2307.08691. A causal mask halves the work; unfused attention also computes the masked half.
    CASE
        WHEN is_counted
            THEN attention_16bit_per_token / 2 * attention_length / attended_length
                / attention_flops_per_second
                + attention_fp32_per_token / 2 / (fp32_flops_per_second * k.attention_fp32)
        WHEN flash_attention = 0
            THEN 4e0 * seq_len * query_width * layers * (3e0 + recompute_passes) / matmul_flops_per_second
                + heads * seq_len * layers * k.traffic_quadratic_attention * (3e0 + recompute_passes)
                / memory_bytes_per_second
        ELSE 2e0 * attention_length * query_width * layers * (3.5e0 + recompute_passes)
            / attention_flops_per_second
    END AS attention_seconds_per_token,
    -- The backward pass moves twice as many bytes as the forward pass.
    CASE
        WHEN is_counted THEN (
            moved_bytes_per_token
            -- The traces are of dense models: they do not show how tokens reach their experts and return.
            + (expert_params > 0)::INTEGER * layers * hidden * experts_active * bytes_16bit()
            * dispatch_passes() * (3e0 + recompute_passes)
        ) / (memory_bytes_per_second * k.bandwidth_efficiency)
        ELSE layers
            * (
                layer_bytes_per_token * k.traffic_fused * (1 + fp32_residual * k.traffic_fp32_residual)
                -- Dropout and the products of an adapter read its input and its output, and write the output,
                -- which engines fuse with their own products (TEFusedLoRALinear in Megatron-Bridge).
                + CASE WHEN kernels = 'engine' THEN 0e0 ELSE k.adapter_traffic END
                * bytes_16bit() * (adapted_in + adapted_out)
            )
            * (3e0 + recompute_passes) / memory_bytes_per_second
    END AS elementwise_seconds_per_token,
    adds_expert_biases * layers * experts_active * hidden * expert_bias_bytes() * (2e0 + recompute_passes)
        / memory_bytes_per_second AS expert_bias_seconds_per_token,
    -- Folding adapters reads and writes the weights; gradients are written once and read twice.
    (
        moved_weight_bytes + folded_bytes * (5 + 2 * recompute_passes)
        + sliced_expert_bytes(slices_experts, is_full, experts, expert_params, full_weight_bytes)
    )
        / (memory_bytes_per_second * k.bandwidth_efficiency)
        + kernel_launches * k.kernel_seconds AS fixed_traffic_seconds,
    CASE
        WHEN NOT is_quantized THEN 0e0
        -- The traces use 4-bit weights.
        WHEN is_counted AND quantization <> 'gptq'
            THEN dequantized_traffic_bytes / (quantized_weight_bytes('nf4') + bytes_16bit())
        ELSE params_linear * (2e0 + recompute_passes) * (1 - unquantized_share)
            * CASE WHEN quantization = 'gptq' THEN k.dequantization_gptq ELSE 1e0 END
    END * dequantized_weight_seconds AS dequantization_seconds,
    host_factor * CASE cuda_graph WHEN 'step' THEN 0e0 WHEN 'parts' THEN k.host_graphed ELSE 1e0 END
    * CASE
        WHEN is_counted
            THEN python_operations * k.python_operation_seconds
                + autograd_operations * k.autograd_operation_seconds
        ELSE layers * (2e0 + recompute_passes)
            * (
                CASE WHEN kernels = 'engine' THEN k.host_seconds_engine ELSE k.host_seconds_layer END
                + CASE
                    WHEN stack <> 'hf' AND expert_params > 0 THEN k.host_seconds_experts * expert_overhead
                    ELSE 0e0
                END
            )
            * (CASE WHEN is_full THEN 1e0 ELSE k.host_adapter_factor END)
            * (CASE WHEN is_quantized THEN 1 + k.host_quantized ELSE 1e0 END)
    END
    + CASE
        WHEN cuda_graph = 'step' THEN 0e0
        ELSE layers * (
            CASE WHEN expert_params > 0 THEN experts / expert_parallel ELSE 0e0 END
            * expert_loop_seconds(
                stack, kernels, is_full, slices_experts, adds_expert_biases, recompute_passes, k
            )
            + micro_batch * looped_sequences * rotary_loop_seconds(recompute_passes, k)
        )
    END AS host_floor_seconds,
    -- Once per step, the optimizer reads the gradients, and reads and writes the weights and both moments.
    -- For adapters, all these tensors are in fp32.
    CASE WHEN is_full THEN params_total ELSE adapter_params END
        * CASE
            WHEN NOT is_full OR has_masters THEN adamw_fp32_bytes()
            ELSE 3e0 * full_weight_bytes
                + CASE WHEN is_8bit_optimizer THEN 4e0 ELSE 4e0 * full_weight_bytes END
        END
        * CASE
            WHEN steps_foreach AND training_precision <> 'deepspeed_bf16' AND offload NOT LIKE '%cpu%'
                THEN foreach_passes()
            ELSE 1e0
        END
        * k.optimizer_traffic / memory_bytes_per_second AS optimizer_seconds_unsharded,
    params_linear * linear_width + params_unquantized * bytes_16bit() AS gathered_bytes,
    -- FSDP gathers a layer once for forward and once for recompute and backward; ZeRO-3 gathers it per pass.
    CASE WHEN sharding = 'zero3' THEN 2e0 + recompute_passes ELSE 2e0 END AS gather_passes,
    -- Keys and values of the other context-parallel ranks are received in the forward pass, in recompute and
    -- in the backward pass, which also receives the gradients of both: ring attention, Liu et al. 2023, arXiv
    -- 2310.01889.
    2e0 * layers * key_value_width * bytes_16bit() * (3e0 + recompute_passes) * (context_parallel - 1)
        AS context_bytes_per_token,
    CASE
        WHEN NOT is_full THEN adapter_params * adapter_bytes
        -- DistributedDataParallel reduces gradients in the weights' format, Megatron in its fp32 buffer, and
        -- torchtitan and prime-rl in fp32.
        WHEN sharding = 'ddp' AND kernels <> 'engine' THEN params_total * full_weight_bytes
        WHEN has_gradient_buffer OR training_precision = 'fp32'
            OR (training_precision = 'amp' AND kernels = 'compiled')
            THEN params_total * bytes_fp32()
        ELSE params_total * bytes_16bit()
    END AS reduced_bytes
FROM _speed_efficiency;
COMMENT ON MACRO TABLE speed_coefficients IS
    'The seconds per token and per micro-step that each part of a training step takes on one GPU, before micro-batch, sharding and links are applied. FLOPs follow Kaplan et al. 2020 (arXiv 2001.08361) and, for attention, Dao 2023 (arXiv 2307.08691); rates come from gpus.csv; constants are fitted.';

CREATE OR REPLACE MACRO bottleneck_of(
    matmul, attention, traffic, logits, dequantization, host, communication, offload, optimizer
) AS
    CASE greatest(matmul, attention, traffic, logits, dequantization, host, communication, offload, optimizer)
        WHEN matmul THEN 'matrix products'
        WHEN attention THEN 'attention'
        WHEN traffic THEN 'memory traffic'
        WHEN logits THEN 'logits'
        WHEN dequantization THEN 'dequantization'
        WHEN host THEN 'host'
        WHEN communication THEN 'communication'
        WHEN offload THEN 'offload'
        ELSE 'optimizer'
    END;
COMMENT ON FUNCTION bottleneck_of IS 'The term of a training step that takes the most time, given the seconds of each term.';

CREATE OR REPLACE MACRO speed_terms(scaled) AS TABLE
WITH _speed_compute AS (
    SELECT
        *,
        -- An expert takes as long for few tokens as for many; tokens of all expert-parallel ranks are pooled.
        2e0 * expert_params * (product_passes + recompute_passes) / matmul_flops_per_second
            * k.expert_half_tokens / expert_parallel
            + bytes_16bit() * (params_linear - expert_params * (1 - 1 / expert_parallel))
            * (product_passes + recompute_passes) * k.weight_reads / memory_bytes_per_second
            AS weight_read_seconds,
        -- Tokens travel to their experts and back, forward and backward, in 16 bits: 4 x 2 bytes each.
        CASE
            WHEN expert_params > 0
                THEN 8e0 * layers * hidden * experts_active * k.expert_exchange
            ELSE 0e0
        END AS exchanged_bytes_per_token,
        (matmul_seconds_per_token * micro_step_tokens + weight_read_seconds) / model_parallel
            AS matmul_seconds,
        attention_seconds_per_token * micro_step_tokens / model_parallel AS attention_seconds,
        -- A kernel finds in the cache what the kernel before it wrote there: an elementwise operation of the
        -- MLP reads two tensors and writes one.
        least(1e0, cache_bytes / (
            3e0 * bytes_16bit() * active_intermediate * micro_step_tokens / tensor_parallel
        )) AS cached_share,
        (
            elementwise_seconds_per_token * micro_step_tokens * (1 - k.cache_gain * cached_share)
            + expert_bias_seconds_per_token * micro_step_tokens + fixed_traffic_seconds
        ) / model_parallel AS traffic_seconds,
        -- The last stage of a pipeline computes the head, for which the other stages wait, unless the layers
        -- are split to make room for it and the embeddings: Llama 3.1 405B has 126, for 8 or 16 stages.
        logits_seconds_per_token * micro_step_tokens / tensor_parallel
            * (
                1 / pipeline_parallel
                + CASE WHEN (layers + 2) % pipeline_parallel = 0 THEN 0e0 ELSE k.head_imbalance END
                * (1 - 1 / pipeline_parallel)
            ) AS logits_seconds,
        dequantization_seconds / model_parallel AS dequantize_seconds,
        -- FSDP, and stage 3 of DeepSpeed's ZeRO, gather and free each module in Python hooks.
        CASE
            WHEN sharding = 'zero3' AND is_trainer THEN layers * k.zero3_hook_seconds
            WHEN sharding = 'fsdp' AND gpu_count > 1 THEN layers * k.fsdp_hook_seconds * host_factor
            ELSE 0e0
        END AS hook_seconds,
        (host_floor_seconds + hook_seconds) / pipeline_parallel AS host_seconds,
        k.host_step_seconds * host_factor / grad_accum AS host_per_step_seconds,
        -- Optimizer state in host memory is updated there, by processors that a node's GPUs share.
        CASE
            WHEN offload LIKE '%cpu%'
                THEN optimizer_seconds_unsharded * memory_bytes_per_second
                    / (k.host_memory_gb_s * 1e9) / node_count
            ELSE optimizer_seconds_unsharded / optimizer_shards
        END / grad_accum AS optimizer_seconds,
        -- Offloaded weights are read twice, gradients written once, and checkpoints written and read once.
        CASE
            WHEN offload LIKE '%cpu%'
                THEN (gathered_bytes * 2e0 + reduced_bytes) / model_parallel / host_bytes_per_second
                    / CASE WHEN shards_optimizer THEN data_parallel ELSE 1e0 END
            ELSE 0e0
        END + CASE
            WHEN offload LIKE '%act%'
                THEN 2e0 * layers * hidden * bytes_16bit() * micro_step_tokens / model_parallel
                    / host_bytes_per_second
            ELSE 0e0
        END AS copied_seconds,
        network_bytes_per_second(node_network_gbps) * k.network_efficiency AS network_bytes_per_second,
        gpu_count / node_count AS gpus_per_node,
        -- In a rack, NVLink joins whole nodes; elsewhere it ends at the node, or at the pair on a bridge.
        CASE
            WHEN nvlinked_gpus > max_gpus_per_node AND gpus_per_node >= max_gpus_per_node THEN nvlinked_gpus
            ELSE least(nvlinked_gpus, gpus_per_node)
        END AS linked_gpus,
        greatest(gpus_per_node, linked_gpus) AS local_gpus,
        -- Ranks are placed by tensor-parallel group first, and then by expert-parallel group.
        greatest(1e0, expert_parallel * tensor_parallel / local_gpus) AS expert_nodes,
        -- Cards that cannot access each other's memory pass their data through host memory, whose bandwidth
        -- is enough for two cards; more cards of a node have to share it.
        CASE WHEN shares_host THEN least(1e0, 2e0 / gpus_per_node) ELSE 1e0 END AS host_share,
        -- A group is as fast as its slowest link: PCIe, if there are more cards than NVLink joins.
        CASE WHEN gpus_per_node > linked_gpus THEN pcie_link_bytes_per_second ELSE nvlink_bytes_per_second END
            * host_share AS link_bytes_per_second,
        CASE
            WHEN least(tensor_parallel, gpus_per_node) > linked_gpus THEN pcie_link_bytes_per_second
            ELSE nvlink_bytes_per_second
        END * host_share AS tensor_link_bytes_per_second,
        -- Bytes that each GPU receives per micro-step. An all-reduce moves bytes twice, but once per step; a
        -- sharded optimizer gathers the updated weights instead.
        CASE
            WHEN shards_weights THEN gather_passes * gathered_bytes + reduced_bytes
            WHEN sharding = 'none' THEN 0e0
            WHEN shards_optimizer AND is_full
                THEN (reduced_bytes + params_total * bytes_16bit()) / grad_accum
            ELSE 2e0 * reduced_bytes / grad_accum
        END / model_shards AS collective_bytes
    FROM query_table(scaled)
),

_speed_communication AS (
    SELECT
        *,
        CASE
            WHEN data_parallel > 1 THEN greatest(
                collective_bytes * (data_parallel - 1) / data_parallel / link_bytes_per_second,
                CASE
                    WHEN node_count > 1
                        THEN collective_bytes * (node_count - 1) / node_count / network_bytes_per_second
                    ELSE 0e0
                END
            )
            -- Each layer is gathered twice, and its gradients are scattered once.
            + CASE
                WHEN shards_weights
                    THEN 3e0 * layers / pipeline_parallel * k.collective_latency_seconds * log2(data_parallel)
                ELSE 0e0
            END
            ELSE 0e0
        END AS collective_seconds,
        -- Tensor parallelism reduces a layer's activations four times, each time in two passes and in 16
        -- bits: Shoeybi et al. 2019, arXiv 1909.08053.
        CASE
            WHEN tensor_parallel > 1
                THEN 8e0 * layers / pipeline_parallel * hidden * bytes_16bit() * micro_step_tokens
                    * greatest(
                        (tensor_parallel - 1) / tensor_parallel / tensor_link_bytes_per_second,
                        -- A group that spans nodes uses the network of every node.
                        greatest(0e0, 1 - local_gpus / tensor_parallel) / network_bytes_per_second
                    )
            ELSE 0e0
        END * exposed_tensor_share(
            kernels, is_full, software_date,
            peer_to_peer AND nvlink_gb_s IS NOT NULL AND tensor_parallel <= linked_gpus
        )
        -- A token whose expert is on its own rank does not travel. Others cross the network once for each
        -- node with any of their experts, and NVLink passes them on to its GPUs (DeepEP, HybridEP).
        + exchanged_bytes_per_token * micro_step_tokens / model_parallel * (
            (expert_parallel - 1) / expert_parallel / link_bytes_per_second
            + (expert_nodes - 1) * (1 - pow(1 - 1 / expert_nodes, experts_active)) / experts_active
            * gpus_per_node / network_bytes_per_second
        ) AS tensor_parallel_seconds,
        -- Keys and values are sent while attention is computed.
        greatest(
            0e0,
            context_bytes_per_token * micro_step_tokens / model_parallel * greatest(
                1 / link_bytes_per_second,
                CASE
                    WHEN context_parallel * tensor_parallel > local_gpus
                        THEN gpus_per_node / network_bytes_per_second
                    ELSE 0e0
                END
            ) - k.communication_overlap * attention_seconds
        ) AS context_parallel_seconds,
        -- FSDP gathers its root unit (embeddings and head) before the first layer and reduces its gradients
        -- after the last, so neither can be hidden.
        CASE
            WHEN gathers_weights AND sharding = 'fsdp'
                THEN least(1e0, params_unquantized
                    * (bytes_16bit() + is_full::INTEGER * reduced_bytes / params_total)
                    / model_parallel / collective_bytes) * collective_seconds
            ELSE 0e0
        END AS root_seconds,
        matmul_seconds + attention_seconds + traffic_seconds + logits_seconds + dequantize_seconds
            AS gpu_seconds
    FROM _speed_compute
),

_speed_exposed AS (
    SELECT
        *,
        -- Gathered weights, scattered gradients and offloaded tensors travel while the GPU computes.
        collective_seconds - root_seconds + copied_seconds AS overlapped_seconds,
        coalesce(exposed_seconds(
            overlapped_seconds, k.communication_overlap * gpu_seconds, k.exposure_spread
        ) / nullif(overlapped_seconds, 0e0), 0e0) AS exposed_share,
        root_seconds + exposed_share * (collective_seconds - root_seconds)
            + tensor_parallel_seconds + context_parallel_seconds AS communication_seconds,
        exposed_share * copied_seconds AS offload_seconds,
        -- The host keeps working while the GPU waits for other GPUs and for copies.
        greatest(
            CASE WHEN expert_params > 0 AND stack <> 'hf' THEN synced_host_share() ELSE 0e0 END
            * host_seconds,
            exposed_seconds(
                host_seconds, k.host_overlap * gpu_seconds + communication_seconds + offload_seconds,
                k.exposure_spread
            )
        ) AS host_exposed_seconds
    FROM _speed_communication
),

_speed_step AS (
    SELECT
        *,
        (gpu_seconds + host_exposed_seconds + communication_seconds + offload_seconds)
            -- GPUs that do not gather weights wait for each other once a step, and the delays of its
            -- micro-steps average out.
            * (1 + k.waiting_per_doubling * log2(gpu_count)
                / CASE WHEN shards_weights THEN 1e0 ELSE sqrt(grad_accum) END)
            -- A pipeline idles while it fills and drains; interleaving more stages per GPU shortens this:
            -- Narayanan et al. 2021, arXiv 2104.04473.
            * (1 + coalesce(1 / virtual_pipeline, k.bubble_share) * (pipeline_parallel - 1) / grad_accum)
            + optimizer_seconds + host_per_step_seconds AS step_seconds
    FROM _speed_exposed
)

SELECT
    *,
    micro_step_tokens / step_seconds / model_parallel AS tokens_per_second_per_gpu,
    bottleneck_of(
        matmul_seconds, attention_seconds, traffic_seconds, logits_seconds, dequantize_seconds,
        host_exposed_seconds, communication_seconds, offload_seconds, optimizer_seconds
    ) AS bottleneck
FROM _speed_step;
COMMENT ON MACRO TABLE speed_terms IS
    'The seconds that one micro-step takes, term by term, and tokens per second per GPU.';
