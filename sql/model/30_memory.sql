-- Peak memory per GPU: the maximum over the phases of a step, not a sum of terms.

CREATE OR REPLACE MACRO memory_coefficients(settings) AS TABLE
WITH _memory_settings AS (
    SELECT * FROM query_table(settings)
)

SELECT
    s.*,
    CASE
        WHEN is_full THEN (params_total + untied_params) * trained_weight_bytes
        WHEN is_quantized THEN params_linear * linear_width + (params_unquantized + untied_params)
            * CASE WHEN kbit_upcast = 1 THEN bytes_fp32() ELSE weight_bytes END
        ELSE (params_total + untied_params) * weight_bytes
    END AS weight_total_bytes,
    CASE WHEN is_full THEN params_total + untied_params ELSE adapter_params END AS trainable_params,
    CASE
        WHEN has_gradient_buffer THEN bytes_fp32()
        WHEN is_full THEN trained_weight_bytes
        ELSE adapter_bytes
    END AS gradient_bytes,
    -- The two moments of Adam; mixed precision under ZeRO also keeps an fp32 copy of the weights.
    CASE
        -- The Trainer of transformers keeps the moments of embeddings in fp32 (Trainer.create_optimizer).
        WHEN is_8bit_optimizer THEN bytes_8bit_moments() + CASE
            WHEN is_full AND is_trainer
                THEN (2e0 * bytes_fp32() - bytes_8bit_moments()) * vocab * hidden / params_total
            ELSE 0e0
        END + CASE WHEN has_masters THEN bytes_fp32() ELSE 0e0 END
        WHEN has_masters THEN 3e0 * bytes_fp32()
        WHEN is_full THEN 2e0 * full_weight_bytes
        ELSE 2e0 * adapter_bytes
    -- The pages of a paged optimizer do not count as torch's memory, but may all be on the process's GPU.
    END * CASE WHEN is_paged_optimizer AND memory_metric <> 'smi' THEN 0e0 ELSE 1e0 END AS optimizer_bytes,
    -- foreach AdamW, long the Trainer's default, keeps one more copy of the updated weights (torchtune,
    -- torchtitan and Megatron fuse the step). PyTorch 2.0, the first to use it, kept two, and earlier
    -- versions step one tensor after the other (torch/optim/adamw.py). Mixed precision under ZeRO keeps an
    -- fp32 copy of the gradients.
    CASE
        WHEN steps_foreach
            THEN k.foreach_copy * CASE
                WHEN software_date < DATE '2023-04-01' THEN 0e0
                WHEN software_date < DATE '2023-10-01' THEN 2e0
                ELSE 1e0
            END * CASE
                WHEN has_masters THEN bytes_fp32()
                WHEN is_full THEN full_weight_bytes
                ELSE adapter_bytes
            END
        ELSE 0e0
    END + CASE WHEN has_masters AND NOT has_gradient_buffer THEN bytes_fp32() ELSE 0e0 END
        AS step_copy_bytes,
    layers * hidden * CASE WHEN fp32_residual = 1 THEN bytes_fp32() ELSE bytes_16bit() END
        AS checkpoint_bytes_per_token,
    layers * (
        layer_bytes_per_token
        -- Until version 0.43.2, bitsandbytes kept the input of each quantized layer.
        - CASE
            WHEN is_quantized AND quantization <> 'gptq' AND software_date < DATE '2024-07-01' THEN 0e0
            ELSE frozen_input_bytes_per_token
        END
    )
        * CASE
            WHEN kernels = 'compiled' THEN k.stored_compiled
            WHEN kernels IN ('engine', 'mosaic') THEN k.stored_engine
            ELSE 1e0
        END
        * k.stored_eager
        * CASE WHEN training_precision = 'fp32' THEN bytes_fp32() / bytes_16bit() ELSE 1e0 END
        + layers * has_dropout * dropout_bytes_per_token
        AS stored_bytes_per_token,
    -- Selective checkpointing: engines recompute the MLP or the experts. torchtitan's policy for PyTorch
    -- (distributed/activation_checkpoint.py) saves the output of attention and of every second linear layer
    -- (query, value, gate and down projection), but recomputes grouped products of experts.
    layers * CASE
        WHEN kernels IN ('engine', 'mosaic') THEN k.stored_engine * k.stored_eager * attention_bytes_per_token
        WHEN experts > 1 THEN bytes_16bit() * (2e0 * query_width + key_value_width)
        -- NVFP4, in five of six layers, is not on the list of that policy.
        ELSE bytes_16bit() * (query_width + CASE WHEN fp8 = 2 THEN 1e0 / 6 ELSE 1e0 END
            * (query_width + key_value_width + hidden + active_intermediate))
    END AS selective_bytes_per_token,
    -- Megatron's fused softmax keeps the softmax, the dropout mask and the result, of 2, 1 and 2 bytes per
    -- score (Korthikanti et al. 2022); the backward pass adds a gradient in 16 bits.
    layers * heads * seq_len * CASE
        WHEN flash_attention <> 0 THEN 0e0
        WHEN kernels = 'engine' THEN 2e0 * bytes_16bit() + 1e0
        ELSE k.stored_eager_scores
    END AS stored_score_bytes_per_token,
    layer_bytes_per_token
        * CASE
            -- Everything that the backward pass of a layer needs is already stored.
            WHEN checkpointing = 'none' THEN k.working_stored
            WHEN working_kernels = 'eager' THEN k.working_eager
            WHEN working_kernels = 'compiled' THEN k.working_compiled
            ELSE k.working_fused
        END
        -- The 8 x hidden for norms and residuals in layer_bytes_per_token.
        + CASE WHEN fp32_residual = 1 THEN k.working_fp32_residual * bytes_16bit() * 8e0 * hidden ELSE 0e0 END
        + heads * seq_len * CASE
            WHEN flash_attention <> 0 THEN 0e0
            WHEN kernels = 'engine' THEN bytes_16bit() * 3e0 + 1e0
            ELSE k.working_eager_scores
        END
        + CASE WHEN checkpointing = 'none' THEN 0e0 ELSE has_dropout * dropout_bytes_per_token END
        AS working_bytes_per_token,
    CASE WHEN is_quantized THEN k.working_quantized * bytes_16bit() * hidden * intermediate ELSE 0e0 END
        -- A layer's experts with adapters added, and the experts' gradients, which Liger holds all at once.
        + folded_bytes / layers
        * ((checkpointing = 'full')::INTEGER + CASE kernels WHEN 'eager' THEN 1e0 / 3 ELSE 1e0 END)
        AS unpacked_bytes,
    vocab * logit_bytes AS logits_bytes_per_token,
    -- Unsharded parts of a sharded run: the root unit (embeddings and head) and a few layers.
    params_unquantized * bytes_16bit() AS root_unit_bytes,
    k.fsdp_layers * params_linear / layers * linear_width AS layer_units_bytes,
    greatest(vocab * hidden, hidden * intermediate)::DOUBLE AS largest_tensor_params,
    -- The embeddings, or a head of the same size.
    params_unquantized / (2e0 - tied_embeddings) AS embedding_params,
    -- A driver reserves memory per multiprocessor; older and smaller cards have fewer multiprocessors.
    CASE WHEN gpu_year < 2020 THEN k.context_before_2020_gib ELSE k.context_gib END AS context_gib,
    -- If the run follows a traced recipe, the results of the recipe's traces replace these formulas: all of
    -- them if each GPU holds the whole training state, otherwise those for activations and logits.
    t.traced_fixed, t.traced_per_token, CASE WHEN is_traced_whole THEN t.traced_fixed END AS traced_state,
    -- Under autocast, each adapter keeps a 16-bit copy of its input anyway, so dropout adds only the mask.
    untraced_dropout * dropout_bytes_per_token
        / CASE WHEN autocast = 1 THEN bytes_16bit() + 1 ELSE 1e0 END AS dropout_layer_bytes,
    -- Dropout bytes are stored for each layer, or recomputed for the layer whose backward pass is running.
    CASE WHEN checkpointing = 'none' THEN layers * dropout_layer_bytes ELSE 0e0 END AS dropout_stored_bytes,
    CASE WHEN checkpointing = 'none' THEN 0e0 ELSE dropout_layer_bytes END AS dropout_working_bytes
FROM _memory_settings AS s
LEFT JOIN traced_of('_memory_settings') AS t
    USING (recipe, method, model, quantization, lora_rank, lora_targets, seq_len);
COMMENT ON MACRO TABLE memory_coefficients IS
    'The bytes of each part of a training step''s memory, before micro-batch and sharding are applied. The formulas for the training state follow Rajbhandari et al. 2019 (arXiv 1910.02054), and the formulas for activations follow Korthikanti et al. 2022 (arXiv 2205.05198); the constants are fitted.';

CREATE OR REPLACE MACRO routing_imbalance(expert_parallel) AS 1.25e0 * (1 - 1e0 / expert_parallel);
COMMENT ON FUNCTION routing_imbalance IS
    'Tokens that the busiest of the expert-parallel ranks receives beyond the average, as a share of the average, before the router is trained. Assumed, and scaled to the one case that was seen: with 8 ranks, 72.9 GiB were allocated on hot ranks where rank 0 had a peak of 61.7, of which experts store 10.3 (Nemotron 3 Nano in Megatron-Bridge''s skills/nemo-mbridge-perf-activation-recompute).';

CREATE OR REPLACE MACRO peak_phase_of(loss, backward_start, backward_end, optimizer_step) AS
    CASE greatest(loss, backward_start, backward_end, optimizer_step)
        WHEN loss THEN 'loss'
        WHEN backward_start THEN 'start of backward'
        WHEN backward_end THEN 'end of backward'
        ELSE 'optimizer step'
    END;
COMMENT ON FUNCTION peak_phase_of IS 'The phase of a training step that needs the most memory, given the bytes of each phase.';

CREATE OR REPLACE MACRO memory_terms(scaled) AS TABLE
WITH _memory_traced AS (
    SELECT
        *,
        greatest(
            traced_state.forward + traced_per_token.forward * micro_step_tokens,
            traced_state.forward_2 + traced_per_token.forward_2 * micro_step_tokens
        ) + (dropout_stored_bytes + dropout_working_bytes) * micro_step_tokens AS traced_forward,
        greatest(
            traced_state.loss + traced_per_token.loss * micro_step_tokens,
            traced_state.loss_2 + traced_per_token.loss_2 * micro_step_tokens
        ) + dropout_stored_bytes * micro_step_tokens AS traced_loss,
        greatest(
            traced_state.loss_backward + traced_per_token.loss_backward * micro_step_tokens,
            traced_state.loss_backward_2 + traced_per_token.loss_backward_2 * micro_step_tokens
        ) + dropout_stored_bytes * micro_step_tokens AS traced_loss_backward,
        greatest(
            traced_state.last_layer + traced_per_token.last_layer * micro_step_tokens,
            traced_state.last_layer_2 + traced_per_token.last_layer_2 * micro_step_tokens
        ) + (dropout_stored_bytes + dropout_working_bytes) * micro_step_tokens AS traced_last_layer,
        greatest(
            traced_state.first_layer + traced_per_token.first_layer * micro_step_tokens,
            traced_state.first_layer_2 + traced_per_token.first_layer_2 * micro_step_tokens
        ) + dropout_layer_bytes * micro_step_tokens AS traced_first_layer,
        traced_state.step_copy + traced_per_token.step_copy * micro_step_tokens AS traced_step_copy,
        traced_fixed.stored + (traced_per_token.stored + dropout_stored_bytes) * micro_step_tokens
            AS traced_stored,
        traced_fixed.working + (traced_per_token.working + dropout_working_bytes) * micro_step_tokens
            AS traced_working,
        traced_fixed.logits + traced_per_token.logits * micro_step_tokens AS traced_logits
    FROM query_table(scaled)
),

_memory_states AS (
    SELECT
        *,
        CASE WHEN offload LIKE '%cpu%' THEN 0e0 ELSE 1e0 END AS on_gpu,
        coalesce(traced_state.weights, weight_total_bytes / weight_shards) AS weight_bytes_per_gpu,
        coalesce(
            traced_state.adapters,
            CASE WHEN is_full THEN 0e0 ELSE adapter_params * adapter_bytes / weight_shards END
        ) AS adapter_bytes_per_gpu,
        coalesce(
            traced_state.gradients,
            CASE WHEN is_optimizer_in_backward THEN largest_tensor_params ELSE trainable_params END
            * gradient_bytes / gradient_shards
        ) AS gradient_bytes_per_gpu,
        CASE
            WHEN has_recipe_optimizer AND traced_state IS NOT NULL THEN traced_state.optimizer
            ELSE trainable_params * optimizer_bytes / optimizer_shards
        END AS optimizer_bytes_per_gpu,
        CASE
            WHEN has_recipe_optimizer AND traced_state IS NOT NULL THEN traced_step_copy
            WHEN is_optimizer_in_backward THEN 0e0
            ELSE trainable_params * step_copy_bytes / optimizer_shards
        END
            AS step_copy_bytes_per_gpu,
        -- Autocast makes 16-bit copies of wider weights. It caches those of trained weights until the end of
        -- the forward pass, and without checkpointing, the backward pass keeps those of frozen weights, too.
        CASE
            WHEN gathers_weights OR kernels IN ('engine', 'mosaic') OR traced_state IS NOT NULL
                OR is_quantized OR training_precision = 'fp32'
                OR NOT (autocast = 1 OR training_precision = 'amp')
                THEN 0e0
            WHEN CASE WHEN is_full THEN full_weight_bytes ELSE weight_bytes END > bytes_16bit()
                THEN bytes_16bit() * params_linear / model_shards
            ELSE 0e0
        END AS cast_weight_bytes,
        -- DistributedDataParallel reduces gradients in buckets, which hold a second copy of all of them for
        -- the whole run (Li et al. 2020, arXiv 2006.15704): 4 bytes per trained parameter in the traces of
        -- hf-lora-ddp.
        CASE
            WHEN sharding = 'ddp' AND recipe_sharding = 'none' AND kernels <> 'engine'
                THEN trainable_params * gradient_bytes / model_shards
            ELSE 0e0
        END AS bucket_bytes,
        -- Gradients live through the forward pass only if they are accumulated over micro-steps, or have a
        -- buffer of their own.
        CASE WHEN grad_accum > 1 OR has_gradient_buffer THEN 1e0 ELSE 0e0 END AS accumulates,
        coalesce(traced_stored, CASE
            WHEN checkpointing = 'none' THEN stored_bytes_per_token + stored_score_bytes_per_token
            WHEN checkpointing = 'sac' THEN checkpoint_bytes_per_token + selective_bytes_per_token
            WHEN offload LIKE '%act%'
                THEN checkpoint_bytes_per_token * least(1e0, k.offloading_layers / layers)
            ELSE checkpoint_bytes_per_token
        END * micro_step_tokens / tensor_parallel
        + CASE WHEN checkpointing = 'full' THEN 0e0 ELSE folded_bytes END) AS stored_bytes,
        coalesce(
            traced_working + CASE WHEN is_traced_unquantized THEN unpacked_bytes ELSE 0e0 END,
            (working_bytes_per_token * micro_step_tokens + unpacked_bytes) / tensor_parallel
        )
        + CASE
            WHEN doubles_checkpoints
                THEN k.sharded_adapter_copies * checkpoint_bytes_per_token * micro_step_tokens
                    / tensor_parallel
            ELSE 0e0
        END AS working_bytes,
        coalesce(traced_logits, logits_bytes_per_token * micro_step_tokens / tensor_parallel) AS logits_bytes,
        -- Sequence parallelism gathers the input of a layer or of the head, and holds its gradient, for the
        -- whole sequence: Korthikanti et al. 2022, arXiv 2205.05198.
        2e0 * bytes_16bit() * hidden * micro_step_tokens * (1 - 1 / tensor_parallel) AS gathered_input_bytes,
        CASE WHEN gathers_weights THEN root_unit_bytes / model_parallel ELSE 0e0 END AS root_bytes,
        -- Under pipeline parallelism, torchtitan keeps the weights of its stage gathered from micro-batch to
        -- micro-batch (reshard_after_forward), and their gradients unsharded, in fp32.
        CASE
            WHEN gathers_weights AND pipeline_parallel > 1 AND kernels = 'compiled'
                THEN params_linear * (linear_width + CASE WHEN is_full THEN bytes_fp32() ELSE 0e0 END)
                    / model_parallel
            WHEN gathers_weights THEN layer_units_bytes / tensor_parallel
            ELSE 0e0
        END AS units_bytes,
        -- A unit's gradients are unsharded until they are scattered, the root unit's until the end of the
        -- pass: Zhao et al. 2023, arXiv 2304.11277. DeepSpeed scatters buckets of gradients instead.
        CASE
            WHEN gathers_weights AND is_full AND sharding = 'fsdp' THEN bytes_16bit() / model_parallel
            ELSE 0e0
        END AS whole_gradient_bytes,
        whole_gradient_bytes * (params_linear / layers + vocab * hidden) AS first_gradient_bytes,
        whole_gradient_bytes * (params_linear / layers + params_unquantized) AS last_gradient_bytes,
        -- The first stage of a pipeline also holds the embeddings, and the last stage the head.
        CASE
            WHEN pipeline_parallel > 1 THEN 1 + greatest(0e0,
                embedding_params - params_unquantized / pipeline_parallel
            ) / tensor_parallel * model_shards / params_total
            ELSE 1e0
        END AS largest_stage
    FROM _memory_traced
),

_memory_phases AS (
    SELECT
        *,
        on_gpu * largest_stage * (weight_bytes_per_gpu + optimizer_bytes_per_gpu) + adapter_bytes_per_gpu
            + bucket_bytes AS resident_bytes,
        on_gpu * largest_stage * accumulates * gradient_bytes_per_gpu AS kept_gradient_bytes,
        -- The traced bytes of a moment exclude the optimizer state, and include accumulated gradients only if
        -- the recipe accumulates; if the recipe does but the run does not, these gradients are subtracted.
        optimizer_bytes_per_gpu + bucket_bytes
            + kept_gradient_bytes - (recipe_grad_accum - 1) * gradient_bytes_per_gpu AS traced_kept_bytes,
        coalesce(
            greatest(traced_forward, traced_loss) + traced_kept_bytes,
            -- The last stage of a pipeline has one micro-batch in flight, the first stage as many as there
            -- are stages: Narayanan et al. 2021, arXiv 2104.04473.
            resident_bytes + stored_bytes / pipeline_parallel + logits_bytes + gathered_input_bytes
            + root_bytes + kept_gradient_bytes
            + CASE WHEN is_full OR checkpointing = 'none' THEN cast_weight_bytes ELSE 0e0 END
        ) AS loss_phase_bytes,
        coalesce(
            greatest(traced_loss_backward, traced_last_layer) + traced_kept_bytes,
            resident_bytes + stored_bytes + working_bytes + gathered_input_bytes + units_bytes + root_bytes
            + kept_gradient_bytes + first_gradient_bytes
            + cast_weight_bytes / CASE WHEN checkpointing = 'none' THEN 1e0 ELSE layers END
        ) AS backward_start_bytes,
        coalesce(
            traced_first_layer + optimizer_bytes_per_gpu + bucket_bytes,
            resident_bytes + stored_bytes / layers + working_bytes + gathered_input_bytes + units_bytes
            + root_bytes + last_gradient_bytes + on_gpu * largest_stage * gradient_bytes_per_gpu
        ) AS backward_end_bytes,
        resident_bytes + on_gpu * largest_stage * (gradient_bytes_per_gpu + step_copy_bytes_per_gpu)
            + coalesce(traced_state.workspace, 0e0) AS optimizer_phase_bytes
    FROM _memory_states
),

_memory_peak AS (
    SELECT
        *,
        greatest(loss_phase_bytes, backward_start_bytes, backward_end_bytes, optimizer_phase_bytes)
            AS peak_bytes,
        CASE WHEN gpu_count > 1 THEN k.context_multi_gpu_gib ELSE 0e0 END + context_gib AS process_gib,
        -- Tensors whose size changes, which may cost the caching allocator memory through fragmentation.
        logits_bytes + working_bytes AS transient_bytes,
        routing_imbalance(expert_parallel) * routed_share
        * (CASE WHEN checkpointing = 'none' THEN stored_bytes ELSE 0e0 END + working_bytes) AS crowded_bytes,
        -- FSDP2, on which torchtune and torchtitan are built, frees gathered units without waiting for the
        -- allocator to see that another stream is done with them, and leaves no gaps (PyTorch's documentation
        -- of fully_shard).
        CASE
            WHEN gathers_weights AND stack NOT IN ('torchtune', 'compile')
                THEN root_bytes + units_bytes + stored_bytes
            ELSE 0e0
        END AS sharded_bytes
    FROM _memory_phases
)

SELECT
    *,
    gib(peak_bytes) + CASE WHEN traced_state IS NULL THEN k.allocated_base_gib ELSE 0e0 END AS allocated_gib,
    -- The caching allocator keeps more memory than is in use, above all after large transient tensors; when
    -- memory runs short, it gives the surplus back.
    least(
        greatest(usable_memory_gib - process_gib, allocated_gib),
        allocated_gib * k.reserved_ratio
            + gib(k.reserved_transient * transient_bytes + k.reserved_sharded * sharded_bytes)
    ) AS reserved_gib,
    has_proven_recipe AND traced_state IS NOT NULL AS is_proven,
    peak_phase_of(loss_phase_bytes, backward_start_bytes, backward_end_bytes, optimizer_phase_bytes)
        AS peak_phase,
    CASE memory_metric
        WHEN 'alloc' THEN allocated_gib
        WHEN 'reserved' THEN reserved_gib
        ELSE reserved_gib + process_gib
    END AS memory_gib,
    -- A run dies if a phase exceeds usable memory on any rank. Tensors that come and go leave gaps; the
    -- tensors of the optimizer's step are as large as the weights, and most of them stay.
    gib(greatest(
        optimizer_phase_bytes,
        (
            greatest(greatest(loss_phase_bytes, backward_start_bytes) + crowded_bytes, backward_end_bytes)
            + k.fit_transient * transient_bytes
        ) * k.fit_reserved_ratio
    )) + process_gib + k.fit_margin_gib AS needed_gib
FROM _memory_peak;
COMMENT ON MACRO TABLE memory_terms IS
    'The peak memory of each run in GiB per GPU (allocated, reserved, and of the whole process): the largest need among the phases loss, start of backward, end of backward and optimizer step.';
