-- The planner: for each workload and GPU, the fastest settings among those that fit.

CREATE OR REPLACE MACRO plan_columns() AS [
    'job', 'calibration', 'model', 'method', 'seq_len', 'lora_rank', 'lora_targets', 'quantization',
    'micro_batch', 'checkpointing', 'stack', 'optimizer', 'training_precision', 'max_gpus',
    'global_batch_tokens', 'fp8', 'flash_attention', 'sharding', 'offload', 'planned_gpus'
];
COMMENT ON FUNCTION plan_columns IS
    'The columns that the planner reads from a relation of workloads. planned_gpus: a list of the gpu_ids to plan for; null means all GPUs.';

CREATE OR REPLACE MACRO planned_counts() AS [1e0, 2e0, 4e0, 8e0, 16e0, 32e0, 64e0];
COMMENT ON FUNCTION planned_counts IS
    'The numbers of GPUs, and of sequences per micro-batch, that the planner tries: powers of two, because machines come in those sizes. The upper limit is assumed.';

CREATE OR REPLACE MACRO plan_defaults() AS TABLE
SELECT
    p['seq_len']::INTEGER AS seq_len, p['lora_rank']::INTEGER AS lora_rank,
    p['quantization'] AS qlora_quantization, p['stack'] AS stack, p['optimizer'] AS optimizer,
    list_max(planned_counts())::INTEGER AS max_gpus,
    pow(2, 19)::INTEGER AS pretrain_batch_tokens, pow(2, 17)::INTEGER AS batch_tokens,
    p['min_fit_probability']::DOUBLE AS min_fit_probability, 0.99e0 AS sure_fit_probability
FROM setting_defaults();
COMMENT ON MACRO TABLE plan_defaults IS
    'The planner''s defaults for settings that a workload leaves open. Assumed: 2^19 tokens per batch for pretraining (the smallest GPT-3 model was trained with 0.5 million: Brown et al. 2020, arXiv 2005.14165), otherwise 2^17. A plan whose P(fits) is at least min_fit_probability gets the verdict fits; rankings use only such plans. The planner trades memory for speed only among settings that fit with sure_fit_probability (chosen).';

CREATE OR REPLACE MACRO fit_odds(usable_gib, needed_gib, low_ratio, high_ratio) AS
    ln(usable_gib / needed_gib) / greatest(
        1e-3, CASE WHEN needed_gib <= usable_gib THEN ln(high_ratio) ELSE -ln(low_ratio) END
    );
COMMENT ON FUNCTION fit_odds IS
    'The odds that a run estimated to need needed_gib fits in usable_gib, as a logarithm to base 9, given the band of the ratio of measured to estimated memory on held-out runs (low_ratio at p10, high_ratio at p90): 0 at the limit, and 1 when the high end of the band just fits. A band of zero width is treated as 0.1% wide.';

CREATE OR REPLACE MACRO fit_probability(usable_gib, needed_gib, low_ratio, high_ratio) AS
    1 / (1 + pow(9e0, -fit_odds(usable_gib, needed_gib, low_ratio, high_ratio)));
COMMENT ON FUNCTION fit_probability IS
    'P(fits): the probability that belongs to fit_odds, 50% at the limit and 90% when the high end of the band just fits. The distribution is log-logistic on either side of its median, the estimate; held-out residuals are likelier under it than under a log-normal distribution with the same p10 and p90.';

CREATE OR REPLACE MACRO planned_workloads(jobs) AS TABLE
WITH _plan_template AS (
    SELECT
        *, NULL::VARCHAR AS job, NULL::VARCHAR AS calibration, NULL::DOUBLE AS max_gpus,
        NULL::DOUBLE AS global_batch_tokens, NULL::VARCHAR[] AS planned_gpus
    FROM main.measured_runs
    LIMIT 0
),

_plan_given AS (
    FROM _plan_template
    UNION ALL BY NAME
    FROM query_table(jobs)
)

SELECT
    coalesce(job::VARCHAR, concat_ws(' ', g.model, g.method, g.seq_len::DOUBLE)) AS job,
    coalesce(g.calibration, 'all') AS calibration, g.model, g.method,
    coalesce(g.seq_len::DOUBLE, d.seq_len) AS seq_len,
    g.lora_rank::DOUBLE AS lora_rank, nullif(g.lora_targets, '') AS lora_targets,
    CASE WHEN g.method = 'qlora' THEN coalesce(g.quantization, d.qlora_quantization) ELSE 'none' END
        AS quantization,
    g.micro_batch::DOUBLE AS micro_batch_wanted, g.checkpointing AS checkpointing_wanted,
    g.sharding AS sharding_wanted, g.offload AS offload_wanted,
    coalesce(g.stack, d.stack) AS stack, coalesce(g.optimizer, d.optimizer) AS optimizer,
    g.training_precision,
    coalesce(g.max_gpus::DOUBLE, d.max_gpus) AS max_gpus,
    CASE WHEN g.method = 'pretrain' THEN d.pretrain_batch_tokens ELSE d.batch_tokens END AS _batch_tokens,
    coalesce(g.global_batch_tokens::DOUBLE, _batch_tokens) AS global_batch_tokens,
    g.planned_gpus,
    coalesce(g.fp8::DOUBLE, 0e0) AS fp8, coalesce(g.flash_attention::DOUBLE, 1e0) AS flash_attention,
    json_object_of(concat_ws(',',
        assumed(TRUE, 'seq_len', g.seq_len, d.seq_len),
        assumed(g.method IN ('lora', 'qlora'), 'lora_rank', g.lora_rank, d.lora_rank),
        assumed(g.method IN ('lora', 'qlora'), 'lora_targets', nullif(g.lora_targets, ''), 'all_linear'),
        assumed(g.method = 'qlora', 'quantization', g.quantization, d.qlora_quantization),
        assumed(TRUE, 'stack', g.stack, d.stack),
        assumed(TRUE, 'optimizer', g.optimizer, d.optimizer),
        -- plan_variants uses fp16 if the GPU does not support bf16.
        assumed(TRUE, 'training_precision', g.training_precision, usual_precision(g.method)),
        assumed(TRUE, 'global_batch_tokens', g.global_batch_tokens, _batch_tokens),
        assumed(TRUE, 'max_gpus', g.max_gpus, d.max_gpus),
        json_member('software_date', strftime(newest_software(), '%Y-%m')),
        json_member('is_packed', TRUE)
    )) AS plan_assumptions
FROM _plan_given AS g
CROSS JOIN plan_defaults() AS d;
COMMENT ON MACRO TABLE planned_workloads IS
    'Workloads with plan_defaults filled in; plan_assumptions lists the defaults that were used.';

CREATE OR REPLACE MACRO infeasible_on(
    architecture, vendor, has_bf16, has_fp8, method, fp8, training_precision
) AS
    CASE
        WHEN architecture IN ('Kepler', 'Maxwell', 'Pascal') THEN 'unsupported_architecture'
        WHEN fp8 = 1 AND NOT has_fp8 THEN 'no_fp8'
        WHEN training_precision IN ('bf16', 'amp', 'deepspeed_bf16') AND NOT has_bf16 THEN 'no_bf16'
        WHEN method = 'qlora' AND vendor = 'intel' THEN 'no_4bit_kernels'
    END;
COMMENT ON FUNCTION infeasible_on IS
    'The reason why a workload cannot run on a GPU, however much memory the GPU has: unsupported_architecture (current frameworks do not support it), no_fp8 or no_bf16 (the GPU does not support the format), or no_4bit_kernels (no such kernels exist for the vendor''s GPUs); null if there is no such reason.';

CREATE OR REPLACE MACRO plan_variants(jobs) AS TABLE
-- In order of preference: if two settings are equally good, the setting with the lower number is planned.
WITH _spreads (spread, sharding, offload, fewest_gpus, most_gpus) AS (
    VALUES
        (0, 'none', '', 1, 1),
        (1, 'ddp', '', 2, NULL),
        (2, 'zero2', '', 2, NULL),
        (3, 'fsdp', '', 2, NULL),
        (4, 'fsdp', 'cpu', 2, 8)
),

_variants AS (
    SELECT s.*, c.checkpointing, 3 * s.spread + c.cost AS variant
    FROM _spreads AS s
    CROSS JOIN (VALUES (0, 'none'), (1, 'sac'), (2, 'full')) AS c (cost, checkpointing)
),

_sizes AS (
    SELECT list({'gpus': gpus, 'micro_batch': micro_batch} ORDER BY gpus, micro_batch) AS sizes
    FROM (SELECT unnest(planned_counts()) AS gpus)
    CROSS JOIN (SELECT unnest(planned_counts()) AS micro_batch)
)

SELECT
    w.job, w.job AS run_id, w.calibration, w.model, w.method, w.seq_len, w.lora_rank, w.lora_targets,
    w.quantization, 0e0 AS kbit_upcast, w.stack, w.optimizer, w.fp8, w.flash_attention,
    g.gpu_id AS gpu, 1e0 AS gpu_count, v.sharding, v.offload, v.checkpointing,
    coalesce(w.training_precision, CASE WHEN g.bf16_dense_tflops IS NULL THEN 'fp16' END)
        AS training_precision,
    'smi' AS memory_metric,
    {
        'variant': v.variant, 'micro_batch_wanted': w.micro_batch_wanted,
        'global_batch_tokens': w.global_batch_tokens, 'plan_assumptions': w.plan_assumptions,
        'has_nvlink': g.nvlink_gb_s IS NOT NULL,
        -- Several nodes are planned only for server cards, such as those in data centres.
        'sizes': list_filter(z.sizes, lambda size:
            size.gpus BETWEEN v.fewest_gpus AND least(v.most_gpus, w.max_gpus)
            AND (size.gpus <= g.max_gpus_per_node OR g.segment IN ('datacenter', 'accelerator'))
            AND (size.micro_batch = 1 OR (
                w.micro_batch_wanted IS NULL
                AND size.micro_batch * w.seq_len * size.gpus <= w.global_batch_tokens
            ))),
        'unsupported': infeasible_on(
            g.architecture, g.vendor, g.bf16_dense_tflops IS NOT NULL, g.fp8_dense_tflops IS NOT NULL,
            w.method, w.fp8, w.training_precision
        )
    } AS carried
FROM planned_workloads(jobs) AS w
CROSS JOIN main.gpus AS g
CROSS JOIN _variants AS v
CROSS JOIN _sizes AS z
WHERE g.has_full_specs
    AND coalesce(list_contains(w.planned_gpus, g.gpu_id), TRUE)
    AND (w.checkpointing_wanted IS NULL OR w.checkpointing_wanted = v.checkpointing)
    AND (w.sharding_wanted IS NULL OR w.sharding_wanted = v.sharding OR v.sharding = 'none')
    -- Only one lab measured offloading, and the speed of offloading depends on the host, which most sources
    -- do not describe: offloading is planned only on request.
    AND v.offload = coalesce(w.offload_wanted, '')
    AND NOT (w.method IN ('lora', 'qlora') AND v.sharding = 'zero2');
COMMENT ON MACRO TABLE plan_variants IS
    'Every combination of workload, GPU, sharding, offload and checkpointing, as settings of a run; a training_precision left open is chosen by resolved_settings. carried: the other columns that the planner needs. The numbers of GPUs for offloading are assumed.';

CREATE OR REPLACE MACRO candidates_for(jobs) AS TABLE
WITH _variants AS (
    SELECT * FROM plan_variants(jobs)
),

_settings AS (
    SELECT * EXCLUDE (carried), unnest(carried)
    FROM settings_of('_variants')
),

_memory AS (
    SELECT * FROM memory_coefficients('_settings')
),

_speed AS (
    SELECT * FROM speed_coefficients('_memory')
),

_unnested AS (
    SELECT * EXCLUDE (sizes), unnest(sizes) AS size
    FROM _speed
),

_sized AS (
    SELECT
        * EXCLUDE (size, has_nvlink, micro_batch_wanted, global_batch_tokens) REPLACE (
            size.gpus AS gpu_count,
            ceil(size.gpus / max_gpus_per_node) AS node_count,
            CASE WHEN has_nvlink THEN node_network_gbps ELSE ethernet_gbps() END AS node_network_gbps,
            usual_expert_parallel(stack, experts, size.gpus) AS expert_parallel,
            coalesce(micro_batch_wanted, size.micro_batch) AS micro_batch,
            greatest(1e0, round(
                global_batch_tokens / (coalesce(micro_batch_wanted, size.micro_batch) * seq_len * size.gpus)
            )) AS grad_accum
        )
    FROM _unnested
),

_scaled AS (
    SELECT * FROM scale_of('_sized')
),

_fitted AS (
    SELECT * FROM memory_terms('_scaled')
)

SELECT * FROM speed_terms('_fitted');
COMMENT ON MACRO TABLE candidates_for IS
    'All candidates for each workload, evaluated but not pruned: GPU x number of GPUs x sharding x offload x checkpointing x micro-batch.';

CREATE OR REPLACE MACRO judged_candidates(jobs) AS TABLE
WITH _candidates AS (
    SELECT * FROM candidates_for(jobs)
),

_own AS (
    SELECT * FROM with_own_runs('_candidates')
),

_evidence AS (
    SELECT * FROM memory_evidence('_own')
)

SELECT
    j.* EXCLUDE (class, evidence, low_ratio, high_ratio) REPLACE (
        j.memory_gib * own_factor(own_memory) AS memory_gib,
        j.needed_gib * own_factor(own_memory) AS needed_gib,
        j.tokens_per_second_per_gpu * own_factor(own_speed) AS tokens_per_second_per_gpu
    ),
    narrowed(low_ratio, own_memory) AS memory_low_ratio,
    narrowed(high_ratio, own_memory) AS memory_high_ratio,
    fit_probability(
        usable_memory_gib, j.needed_gib * own_factor(own_memory), memory_low_ratio, memory_high_ratio
    ) AS fit_probability
FROM with_band('_evidence', 'memory') AS j;
COMMENT ON MACRO TABLE judged_candidates IS
    'The rows of candidates_for, corrected from own runs, with the memory band and P(fits) of each candidate.';

CREATE OR REPLACE MACRO best_candidates(jobs) AS TABLE
SELECT
    job, gpu, gpu_count, node_count,
    -- These columns are the same for all candidates of a job, GPU and number of GPUs.
    any_value(COLUMNS([
        'calibration', 'model', 'method', 'seq_len', 'lora_rank', 'lora_targets', 'params_total', 'is_full',
        'quantization', 'optimizer', 'stack', 'experts', 'node_network_gbps', 'usable_memory_gib',
        'plan_assumptions', 'unsupported'
    ])),
    max(fit_probability) AS fit_probability, min(needed_gib) AS least_needed_gib,
    unnest(max_by(struct_pack(
        training_precision, sharding, offload, checkpointing, micro_batch, grad_accum,
        memory_low_ratio, memory_high_ratio, memory_gib, needed_gib, reserved_gib, allocated_gib, process_gib,
        tokens_per_second_per_gpu, full_weight_bytes, adapter_params, adapter_bytes, optimizer_bytes,
        on_gpu, weight_bytes_per_gpu, adapter_bytes_per_gpu, gradient_bytes_per_gpu, optimizer_bytes_per_gpu,
        step_copy_bytes_per_gpu, stored_bytes, working_bytes, logits_bytes, root_bytes, units_bytes,
        loss_phase_bytes, backward_start_bytes, backward_end_bytes, optimizer_phase_bytes,
        matmul_seconds, attention_seconds, traffic_seconds, logits_seconds, dequantize_seconds,
        host_exposed_seconds, communication_seconds, offload_seconds, optimizer_seconds,
        host_per_step_seconds, step_seconds, own_memory, own_speed
    ), merit))
FROM (
    SELECT
        *,
        -- Candidates that surely fit come first, by speed, and then those likeliest to fit. Speed and odds
        -- are compared to within 1/1024, and ties go to the lower variant, then to the lower micro-batch
        -- (both are below 100). Aggregates compare a single integer faster than a struct.
        ((1024e0 * CASE
            WHEN fit_probability >= (SELECT d.sure_fit_probability FROM plan_defaults() AS d)
                THEN 1e9 + tokens_per_second_per_gpu * gpu_count
            ELSE fit_odds(usable_memory_gib, needed_gib, memory_low_ratio, memory_high_ratio)
        END)::BIGINT * 100 - variant) * 100 - micro_batch::BIGINT AS merit
    FROM judged_candidates(jobs)
)
GROUP BY job, gpu, gpu_count, node_count;
COMMENT ON MACRO TABLE best_candidates IS 'The best row of judged_candidates for each job, GPU and number of GPUs.';

CREATE OR REPLACE MACRO high_memory_gib(memory_gib, needed_gib, usable_gib, high_ratio) AS
    CASE
        WHEN needed_gib * high_ratio <= usable_gib THEN least(memory_gib * high_ratio, usable_gib)
        ELSE memory_gib * high_ratio
    END;
COMMENT ON FUNCTION high_memory_gib IS
    'The high end of the band of a run''s memory, capped at the usable memory of the GPU if even the high end of needed_gib fits: the allocator returns unused memory before a run dies.';

CREATE OR REPLACE MACRO plan_verdict(needed_gib, usable_gib, fit_probability) AS
    CASE
        WHEN needed_gib > usable_gib THEN 'does_not_fit'
        WHEN fit_probability < (SELECT d.min_fit_probability FROM plan_defaults() AS d) THEN 'tight'
        ELSE 'fits'
    END;
COMMENT ON FUNCTION plan_verdict IS
    'The verdict on a plan: fits, tight (estimated to fit, but with a P(fits) below the min_fit_probability of plan_defaults) or does_not_fit.';

CREATE OR REPLACE MACRO five_digits(number) AS printf('%.4e', number)::DOUBLE;
COMMENT ON FUNCTION five_digits IS
    'A number rounded to five significant digits. Speeds are rounded once, when they are planned, so that everyone who computes with a published speed gets the same hours and dollars.';

CREATE OR REPLACE MACRO plans_in_full(jobs) AS TABLE
WITH _chosen AS (
    SELECT * FROM best_candidates(jobs)
),

_judged AS (
    SELECT * FROM speed_evidence('_chosen')
)

SELECT
    c.job, c.model, c.method, c.seq_len::INTEGER AS seq_len, c.lora_rank::INTEGER AS lora_rank,
    c.lora_targets, c.gpu AS gpu_id, c.gpu_count::INTEGER AS gpu_count,
    c.node_count::INTEGER AS node_count,
    CASE WHEN c.node_count > 1 THEN c.node_network_gbps END AS node_network_gbps,
    c.micro_batch::INTEGER AS micro_batch, c.grad_accum::INTEGER AS grad_accum,
    c.checkpointing, c.sharding, c.offload, c.quantization, c.optimizer, c.training_precision, c.stack,
    c.memory_gib, c.memory_gib * c.memory_low_ratio AS memory_gib_low,
    high_memory_gib(c.memory_gib, c.needed_gib, c.usable_memory_gib, c.memory_high_ratio) AS memory_gib_high,
    c.usable_memory_gib, c.usable_memory_gib - c.needed_gib AS memory_margin_gib, c.least_needed_gib,
    CASE
        WHEN c.unsupported IS NULL THEN plan_verdict(c.needed_gib, c.usable_memory_gib, c.fit_probability)
        ELSE 'does_not_fit'
    END AS verdict,
    CASE WHEN c.unsupported IS NULL THEN c.fit_probability ELSE 0e0 END AS fit_probability,
    five_digits(c.tokens_per_second_per_gpu * c.gpu_count) AS tokens_per_second,
    narrowed(c.low_ratio, c.own_speed) AS speed_low_ratio,
    narrowed(c.high_ratio, c.own_speed) AS speed_high_ratio,
    tokens_per_second * speed_low_ratio AS tokens_per_second_low,
    tokens_per_second * speed_high_ratio AS tokens_per_second_high,
    tokens_per_second / c.gpu_count AS tokens_per_second_per_gpu,
    bottleneck_of(
        c.matmul_seconds, c.attention_seconds, c.traffic_seconds, c.logits_seconds, c.dequantize_seconds,
        c.host_exposed_seconds, c.communication_seconds, c.offload_seconds, c.optimizer_seconds
    ) AS bottleneck,
    own_evidence(c.evidence, c.own_speed) AS evidence, c.evidence_run,
    json_with(c.plan_assumptions, nullif(concat_ws(
        ',', own_members(c.own_memory, c.own_speed), i.ignored, CASE
        WHEN c.method = 'qlora' AND fuses_experts(c.stack, c.experts)
            THEN json_member('unquantized', 'experts')
    END), '')) AS assumptions,
    CASE
        WHEN c.unsupported IS NOT NULL THEN c.unsupported
        WHEN c.needed_gib > c.usable_memory_gib THEN 'too_little_memory'
    END AS infeasible_reason,
    peak_phase_of(
        c.loss_phase_bytes, c.backward_start_bytes, c.backward_end_bytes, c.optimizer_phase_bytes
    ) AS peak_phase,
    gib(c.on_gpu * c.weight_bytes_per_gpu) AS weights_gib, gib(c.adapter_bytes_per_gpu) AS adapter_gib,
    gib(c.on_gpu * c.gradient_bytes_per_gpu) AS gradients_gib,
    gib(c.on_gpu * c.optimizer_bytes_per_gpu) AS optimizer_gib,
    gib(c.on_gpu * c.step_copy_bytes_per_gpu) AS optimizer_copy_gib, gib(c.stored_bytes) AS activations_gib,
    gib(c.working_bytes) AS working_set_gib, gib(c.logits_bytes) AS logits_gib,
    gib(c.root_bytes + c.units_bytes) AS fsdp_units_gib,
    c.reserved_gib - c.allocated_gib AS fragmentation_gib, c.process_gib AS overhead_gib,
    c.matmul_seconds, c.attention_seconds, c.traffic_seconds, c.logits_seconds,
    c.dequantize_seconds AS dequantization_seconds, c.host_exposed_seconds AS host_seconds,
    c.communication_seconds, c.offload_seconds, c.optimizer_seconds,
    c.host_per_step_seconds AS overhead_seconds, c.step_seconds AS micro_step_seconds,
    -- The sizes of a checkpoint to resume from, and of the result kept at the end.
    gib(CASE
        WHEN c.is_full THEN c.params_total * (c.full_weight_bytes + c.optimizer_bytes)
        ELSE c.adapter_params * (c.adapter_bytes + c.optimizer_bytes)
    END) AS training_state_gib,
    gib(CASE WHEN c.is_full THEN c.params_total * bytes_16bit() ELSE c.adapter_params * c.adapter_bytes END)
        AS result_gib,
    gib(c.params_total * bytes_16bit()) AS model_download_gib,
    c.needed_gib, c.memory_low_ratio, c.memory_high_ratio
FROM with_band('_judged', 'speed') AS c
CROSS JOIN ignored_columns(jobs, plan_columns()) AS i;
COMMENT ON MACRO TABLE plans_in_full IS
    'The rows of plans_for with the numbers behind the bands: needed_gib (the memory without which a run dies), and the low and high ratios of the bands of memory and speed.';

CREATE OR REPLACE MACRO plans_for(jobs) AS TABLE
SELECT
    * EXCLUDE (needed_gib, memory_low_ratio, memory_high_ratio, speed_low_ratio, speed_high_ratio)
FROM plans_in_full(jobs);
COMMENT ON MACRO TABLE plans_for IS
    'One row per job, GPU and number of GPUs: the settings with the most tokens per second among the settings that fit with sure_fit_probability (plan_defaults), or, if no settings do, the settings likeliest to fit. fit_probability is that of the likeliest settings: it says whether the job can run on the GPUs, and the settings shown are as likely to fit or surely fit. Columns: memory and time term by term, bands, evidence, and infeasible_reason if nothing fits. Times are in seconds per micro-step; overhead_seconds is the fixed time of a step, spread over the step''s micro-steps.';
