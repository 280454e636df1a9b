"""Each setting that changes memory or speed does so by what physics, or a published pair of runs, says."""

import duckdb
import pytest

from tests.model.conftest import Estimate

GIB = 1024**3
SPEED = "tokens_per_second_per_gpu"
LLAMA_8B = {"model": "llama-3.1-8b", "gpu": "a100-sxm-80gb", "memory_metric": "alloc"}
TOKENS = 4 * 2048
VOCAB = 128256


def test_a_loss_outside_the_model_keeps_more_of_each_logit(memory: Estimate) -> None:
    # ms-swift's table of Qwen-7B: 48.4 GiB at 8,192 tokens and 18.0 GiB at 512, 28 bytes per logit with what
    # the allocator loses.
    shared = {**LLAMA_8B, "method": "lora", "micro_batch": 4, "seq_len": 2048}
    inside = memory(**shared, loss_kernel="hf")
    outside = memory(**shared, loss_kernel="outside")
    assert outside["logits_gib"] * GIB / (TOKENS * VOCAB) == pytest.approx(20, rel=0.25)
    assert outside["logits_gib"] > 1.2 * inside["logits_gib"]
    qwen = {"model": "qwen-7b", "gpu": "a100-sxm-80gb", "method": "lora", "lora_rank": 8, "micro_batch": 1,
            "loss_kernel": "outside", "memory_metric": "reserved",
            "lora_targets": "q_proj+k_proj+v_proj"}  # fmt: skip
    grown = memory(**qwen, seq_len=8192)["memory_gib"] - memory(**qwen, seq_len=512)["memory_gib"]
    assert grown == pytest.approx(48.4 - 18.0, rel=0.3)


def test_dropout_keeps_a_copy_and_a_mask_of_each_adapted_input(memory: Estimate) -> None:
    shared = {
        **LLAMA_8B, "method": "lora", "micro_batch": 4, "seq_len": 2048, "checkpointing": "none",
        "stack": "foak", "lora_targets": "q_proj+v_proj+down_proj",
    }  # fmt: skip
    kept = memory(**shared, lora_dropout=0.05)["activations_gib"] - memory(**shared)["activations_gib"]
    inputs = 4096 + 4096 + 14336
    assert kept * GIB == pytest.approx(32 * TOKENS * 3 * inputs)
    assert memory(**shared, lora_dropout=0)["activations_gib"] == memory(**shared)["activations_gib"]


def test_an_adapter_on_the_head_adds_parameters_and_outputs(memory: Estimate) -> None:
    shared = {
        **LLAMA_8B,
        "method": "lora",
        "micro_batch": 4,
        "seq_len": 2048,
        "stack": "litgpt",
        "lora_rank": 16,
    }
    without = memory(**shared, lora_targets="q_proj+o_proj")
    adapted = memory(**shared, lora_targets="q_proj+o_proj+lm_head")
    added = adapted["adapter_gib"] - without["adapter_gib"]
    assert added * GIB == pytest.approx(
        16 * (4096 + VOCAB) * 2
    )  # LitGPT's adapters have 2 bytes per parameter
    assert (adapted["logits_gib"] - without["logits_gib"]) * GIB == pytest.approx(TOKENS * VOCAB * 2 * 2)


def test_litgpt_gives_tied_embeddings_a_head(memory: Estimate) -> None:
    shared = {"model": "gemma-2b", "gpu": "a100-sxm-80gb", "method": "lora"}
    untied = memory(**shared, stack="litgpt")["weights_gib"] - memory(**shared, stack="hf")["weights_gib"]
    assert untied * GIB == pytest.approx(256000 * 2048 * 2, rel=1e-3)
    not_tied = {**shared, "model": "llama-3.1-8b"}
    assert memory(**not_tied, stack="litgpt")["weights_gib"] == pytest.approx(
        memory(**not_tied, stack="hf")["weights_gib"], rel=1e-3
    )


def test_deepspeed_keeps_masters_in_fp32(memory: Estimate) -> None:
    # 16 bytes per parameter, and 4 of the gradients' fp32 copy at the step: Rajbhandari et al. 2019, 4.1.
    state = memory(
        **LLAMA_8B, method="full", gpu_count=8, sharding="zero3", training_precision="bf16", stack="hf"
    )
    parts = state["weights_gib"] + state["gradients_gib"] + state["optimizer_gib"]
    assert parts * 8 * GIB / 8.03e9 == pytest.approx(16, rel=0.01)
    fsdp = memory(
        **LLAMA_8B, method="full", gpu_count=8, sharding="fsdp", training_precision="bf16", stack="hf"
    )
    assert (
        fsdp["weights_gib"] + fsdp["gradients_gib"] + fsdp["optimizer_gib"]
    ) * 8 * GIB / 8.03e9 == pytest.approx(8, rel=0.01)


def test_pages_of_an_optimizer_are_not_torchs_memory(memory: Estimate) -> None:
    # torchtune's pull request 961: 20.2 to 22.3 GiB for Llama-2-7B, less than weights and moments together.
    shared = {"model": "llama-2-7b", "gpu": "a100-sxm-80gb", "method": "full", "optimizer": "paged32_inbwd"}
    assert memory(**shared, memory_metric="alloc")["optimizer_gib"] == 0
    assert memory(**shared, memory_metric="alloc", stack="torchtune")["memory_gib"] < 25
    assert memory(**shared, memory_metric="smi")["optimizer_gib"] > 20


def test_a_process_on_a_t4_needs_less_memory_besides_torch(memory: Estimate) -> None:
    shared = {"model": "qwen2.5-1.5b", "method": "qlora", "stack": "hf"}
    assert memory(**shared, gpu="t4")["overhead_gib"] < memory(**shared, gpu="a100-sxm-80gb")["overhead_gib"]


def test_zero_3_of_deepspeed_costs_the_host_time_in_each_layer(speed: Estimate) -> None:
    shared = {
        "model": "llama-3.1-8b", "gpu": "h100-sxm-80gb", "gpu_count": 8, "method": "lora", "seq_len": 512,
        "stack": "hf", "checkpointing": "none",
    }  # fmt: skip
    small = {name: speed(**shared, sharding=name, micro_batch=1) for name in ("fsdp", "zero3")}
    more = small["zero3"]["host_seconds"] - small["fsdp"]["host_seconds"]
    assert 0 < more <= 32 * 0.007 + 1e-9
    # Behind the products of a large batch it does not show.
    large = {name: speed(**shared, sharding=name, micro_batch=32)[SPEED] for name in ("fsdp", "zero3")}
    assert large["zero3"] / large["fsdp"] > 0.9 > small["zero3"][SPEED] / small["fsdp"][SPEED]


@pytest.mark.slow
def test_fused_attention_gets_faster_with_length_and_wider_heads(speed: Estimate) -> None:
    # Dao 2023, figure 4: twice as fast at 16k as at 1k, on an A100.
    def seconds_per_pair(model: str, seq_len: int, stack: str) -> float:
        terms = speed(
            model=model, gpu="a100-sxm-80gb", method="full", stack=stack, micro_batch=1, seq_len=seq_len,
            checkpointing="none",
        )  # fmt: skip
        return float(terms["attention_seconds"]) / seq_len**2

    for stack in ("hf", "liger", "compile", "te", "mosaic"):
        lengths = [seconds_per_pair("llama-3.1-8b", 1024 * 4**k, stack) for k in range(4)]
        assert lengths == sorted(lengths, reverse=True), stack
        assert 1.4 <= lengths[0] / lengths[2] <= 3, stack
        assert lengths[2] / lengths[3] <= 1.2, stack
    # 16 heads of 128 features against 32 of 64.
    assert 1.1 <= seconds_per_pair("llama-3.2-1b", 65536, "hf") / 16 / (
        seconds_per_pair("llama-3.1-8b", 65536, "hf") / 32 / 2
    ) <= 1.3  # fmt: skip


@pytest.mark.parametrize(
    ("layers", "full", "linear", "window", "length"),
    [
        (32, None, None, None, 32768),
        # Mistral 7B: all layers see 4,096 tokens back, half of that among the first 4,096.
        (32, None, None, 4096, 4096 * (2 - 1 / 8)),
        # Gemma 2 9B: every second layer; gpt-oss: every second, 128 tokens.
        (42, 21, None, 4096, (32768 + 4096 * (2 - 1 / 8)) / 2),
        (36, 18, None, 128, (32768 + 128 * (2 - 1 / 256)) / 2),
        # Qwen3-Next: one layer in four has attention, the rest a gated delta net.
        (48, None, 36, None, (32768 + 3 * 512) / 4),
        # Nemotron 3 Nano: 6 layers of attention and 23 of Mamba, the rest are experts alone.
        (52, 6, 23, None, (6 * 32768 + 23 * 512) / 52),
    ],
)
def test_attention_spans_the_tokens_that_layers_see(
    model: duckdb.DuckDBPyConnection,
    layers: int,
    full: int | None,
    linear: int | None,
    window: int | None,
    length: float,
) -> None:
    (answer,) = model.execute(
        "SELECT attended_length(32768, $1::INTEGER, $2::INTEGER, $3::INTEGER, $4::INTEGER)",
        [layers, full, linear, window],
    ).fetchall()[0]
    assert answer == pytest.approx(length)


@pytest.mark.parametrize(("context_parallel", "shorter"), [(2, 2), (8, 8)])
def test_context_parallelism_is_not_tensor_parallelism(
    speed: Estimate, memory: Estimate, context_parallel: int, shorter: int
) -> None:
    shared = {
        "model": "llama-3.1-8b", "gpu": "h200-sxm-141gb", "gpu_count": 8, "method": "full", "stack": "te",
        "sharding": "zero1", "seq_len": 131072, "tensor_parallel": 1, "checkpointing": "full",
    }  # fmt: skip
    whole = memory(**shared)
    split = memory(**shared, context_parallel=context_parallel)
    assert split["weights_gib"] == whole["weights_gib"]
    assert split["activations_gib"] == pytest.approx(whole["activations_gib"] / shorter)
    tokens = speed(**shared, context_parallel=context_parallel)[SPEED] / speed(**shared)[SPEED]
    assert 0.8 <= tokens <= 1.02


def test_the_last_stage_of_a_pipeline_has_the_head(speed: Estimate) -> None:
    # BigScience's 1.3B on V100: 4,681 tokens/s without a pipeline, 4,369 with 4 stages, 3,745 with 8.
    def at(stages: int) -> float:
        return float(
            speed(
                model="mpt-1b", gpu="v100-sxm-16gb", gpu_count=8, method="pretrain", stack="te",
                training_precision="deepspeed_bf16", sharding="zero1", flash_attention=0, seq_len=2048,
                micro_batch=4, tensor_parallel=1, pipeline_parallel=stages, grad_accum=16 * stages,
                checkpointing="full",
            )[SPEED]
        )  # fmt: skip

    assert 0.7 <= at(8) / at(1) <= 0.97
    assert at(8) < at(4) < at(1)


def test_experts_in_a_loop_wait_for_the_host(speed: Estimate) -> None:
    shared = {
        "model": "qwen3-30b-a3b",
        "gpu": "h100-sxm-80gb",
        "gpu_count": 8,
        "method": "full",
        "seq_len": 2048,
    }
    assert speed(**shared, stack="hf")["host_seconds"] > 48 * 128 * 3 * 0.00002
    few = {**shared, "model": "mixtral-8x7b"}
    assert speed(**few, stack="hf")["host_seconds"] < speed(**shared, stack="hf")["host_seconds"] / 4


def test_tokens_travel_to_experts_on_other_gpus_only(speed: Estimate) -> None:
    shared = {
        "model": "mixtral-8x7b", "gpu": "h100-sxm-80gb", "gpu_count": 8, "method": "pretrain", "stack": "te",
        "sharding": "zero1", "tensor_parallel": 1, "seq_len": 4096, "grad_accum": 1024,
    }  # fmt: skip
    times = [speed(**shared, expert_parallel=ranks)["communication_seconds"] for ranks in (1, 2, 8)]
    assert times[0] < times[1] < times[2]


def test_llama_4_in_transformers_computes_all_experts(speed: Estimate) -> None:
    # Axolotl's README: 519 tokens/s of Scout on an H100 with 17B of 109B parameters active.
    shared = {"model": "llama-4-scout", "gpu": "h100-sxm-80gb", "method": "qlora", "seq_len": 4096}
    dense = speed(**shared, stack="hf")
    assert dense["matmul_seconds"] > 4 * speed(**shared, stack="te")["matmul_seconds"]
    assert 300 <= dense[SPEED] <= 900


def test_latent_attention_has_values_of_their_own_width(model: duckdb.DuckDBPyConnection) -> None:
    # DeepSeek-V3: 128 heads, queries and keys of 192 features, values of 128.
    (query, key_value) = model.execute(
        "WITH jobs AS (SELECT 'deepseek-v3' AS model, 'h100-sxm-80gb' AS gpu) "
        "SELECT query_width, key_value_width FROM settings_of('jobs')"
    ).fetchall()[0]
    assert query == key_value == 128 * (192 + 128) / 2


def test_a_mixture_keeps_hidden_states_for_each_chosen_expert(model: duckdb.DuckDBPyConnection) -> None:
    (mixture,) = model.execute(
        "WITH jobs AS (SELECT 'qwen3-30b-a3b' AS model, 'h100-sxm-80gb' AS gpu) "
        "SELECT layer_bytes_per_token - 2 * (8 * hidden + 3 * query_width + 3 * key_value_width "
        "+ 4 * active_intermediate) FROM settings_of('jobs')"
    ).fetchall()[0]
    assert mixture == 2 * 2 * 8 * 2048


def test_fp8_under_torch_compile_gains_as_much_as_in_pairs_of_runs(speed: Estimate) -> None:
    # torchao's Llama 3 8B on eight H100: 6,150 tokens/s in bf16, 7,689 and 6,768 in fp8.
    shared = {
        "model": "llama-3-8b", "gpu": "h100-sxm-80gb", "gpu_count": 8, "method": "pretrain",
        "stack": "compile", "sharding": "fsdp", "seq_len": 8192, "checkpointing": "sac",
        "loss_kernel": "titan",
    }  # fmt: skip
    gain = speed(**shared, fp8=1)[SPEED] / speed(**shared)[SPEED]
    assert 1.05 <= gain <= 1.3


def test_a_tensor_parallel_group_that_spans_nodes_waits_for_their_network(speed: Estimate) -> None:
    shared = {
        "model": "llama-3.1-70b", "gpu": "h100-sxm-80gb", "gpu_count": 16, "method": "full", "stack": "te",
        "sharding": "zero1", "tensor_parallel": 16, "seq_len": 4096,
    }  # fmt: skip
    one_gpu_nodes = speed(**shared, node_count=16, node_network_gbps=10)
    # 80 layers are reduced four times in two passes, 15/16 of 8,192 features in 16 bits, at 1.25 GB/s.
    assert one_gpu_nodes["communication_seconds"] > 8 * 80 * 4096 * 8192 * 2 * 15 / 16 / 1.25e9
    two_nodes = speed(**shared, node_count=2, node_network_gbps=400)[SPEED]
    fast = speed(**shared, node_count=2, node_network_gbps=3200)[SPEED]
    assert 20 * one_gpu_nodes[SPEED] < two_nodes < 0.8 * fast
    # Groups within the nodes do not see it.
    within = [
        speed(**shared | {"tensor_parallel": 8}, node_count=2, node_network_gbps=gbps, grad_accum=1024)[SPEED]
        for gbps in (400, 3200)
    ]
    assert within[0] == pytest.approx(within[1], rel=0.02)
    # The NVLink domain of a rack of GB200 is 18 nodes.
    rack = {**shared, "gpu": "gb200", "node_count": 4, "grad_accum": 1024}
    rates = [speed(**rack, node_network_gbps=gbps)["communication_seconds"] for gbps in (400, 3200)]
    assert rates[0] == pytest.approx(rates[1], rel=0.02)


def test_a_context_parallel_group_that_spans_nodes_shares_their_network(speed: Estimate) -> None:
    shared = {
        "model": "llama-3.1-8b", "gpu": "h100-sxm-80gb", "gpu_count": 16, "node_count": 2, "method": "full",
        "stack": "te", "sharding": "zero1", "tensor_parallel": 8, "seq_len": 8192, "grad_accum": 1024,
    }  # fmt: skip
    slow, fast = (
        speed(**shared, context_parallel=2, node_network_gbps=gbps)["communication_seconds"]
        for gbps in (10, 3200)
    )
    # Keys and values of 8 heads of 128 features, split over eight GPUs that share 1.25 GB/s.
    assert slow - fast > 0.5 * 2 * 32 * 8 * 128 * 2 * 3 * 4096 / 1.25e9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gpu_count": 64, "pipeline_parallel": 64}, "pipeline_parallel: 64 stages, but the model has 32"),
        ({"gpu_count": 8, "tensor_parallel": 64}, "tensor_parallel 64: does not divide gpu_count 8"),
        ({"gpu_count": 4, "tensor_parallel": 3}, "tensor_parallel 3: does not divide gpu_count 4"),
        (
            {"gpu_count": 8, "tensor_parallel": 4, "context_parallel": 4},
            "tensor_parallel 4 x context_parallel 4: does not divide gpu_count 8",
        ),
        ({"gpu_count": 8, "expert_parallel": 8}, "expert_parallel: 8 ranks, but the model has 1 expert"),
        (
            {"gpu_count": 8, "expert_parallel": 64, "model": "qwen3-30b-a3b"},
            "expert_parallel: 64 ranks, but a pipeline stage has 8 GPUs",
        ),
        ({"gpu_count": 8, "node_count": 5}, "node_count: 8 GPUs are not spread evenly over 5 nodes"),
    ],
)
def test_groups_that_the_gpus_cannot_form_are_refused(
    speed: Estimate, memory: Estimate, settings: dict[str, object], message: str
) -> None:
    for estimate in (speed, memory):
        with pytest.raises(duckdb.Error, match=message):
            estimate(**{**LLAMA_8B, "method": "full", "stack": "te", **settings})


def test_a_bridge_joins_two_cards(speed: Estimate) -> None:
    def exchange_seconds(gpu: str, gpus: int, sharding: str = "fsdp", tensor_parallel: int = 1) -> float:
        return float(
            speed(
                model="llama-3.1-8b", gpu=gpu, gpu_count=gpus, method="full", stack="liger", seq_len=512,
                sharding=sharding, tensor_parallel=tensor_parallel, grad_accum=1024,
            )["communication_seconds"]
        )  # fmt: skip

    # Pairs are faster over the bridge; eight cards are as slow as the same card without one.
    assert exchange_seconds("h100-pcie-nvlink-80gb", 2) < 0.5 * exchange_seconds("h100-pcie-80gb", 2)
    assert exchange_seconds("h100-pcie-nvlink-80gb", 8) == pytest.approx(
        exchange_seconds("h100-pcie-80gb", 8), rel=0.01
    )
    # Groups of two on a node of eight keep to the pairs.
    groups = [
        exchange_seconds(gpu, 8, sharding="zero1", tensor_parallel=2)
        for gpu in ("h100-pcie-nvlink-80gb", "h100-pcie-80gb")
    ]
    assert groups[0] < 0.5 * groups[1]


def test_dropout_counts_on_traced_stacks_once(memory: Estimate) -> None:
    shared = {**LLAMA_8B, "method": "lora", "micro_batch": 4, "seq_len": 2048}
    inputs = 5 * 4096 + 4096 + 14336

    def added(**settings: object) -> float:
        with_dropout, without = (memory(**shared, **settings, lora_dropout=p) for p in (0.1, 0))
        return float(with_dropout["memory_gib"] - without["memory_gib"]) * GIB

    # Traces of hf-lora-no-checkpointing and hf-lora-liger-no-checkpointing with and without dropout 0.1, four
    # layers of Llama 3.1 8B: 0.92 bytes more per input, layer and token are stored.
    for stack in ("hf", "liger"):
        stored = added(stack=stack, checkpointing="none") / (32 * TOKENS * inputs)
        assert 0.9 <= stored <= 1.2, stack
    without_autocast = added(stack="hf", checkpointing="none", autocast=0) / (32 * TOKENS * inputs)
    assert 2.9 <= without_autocast <= 3.4
    assert 0 <= added(stack="liger", checkpointing="full") <= 1.1 * TOKENS * 3 * inputs
    # Traced with dropout: a run with it needs as much as the traces, and one without needs less.
    peft = {"stack": "hf", "checkpointing": "none", "lora_targets": "q_proj+v_proj"}
    traced = memory(**shared, **peft)["memory_gib"]
    assert memory(**shared, **peft, lora_dropout=0.1)["memory_gib"] == traced
    assert added(**peft) >= 0.99 * 32 * TOKENS * 2 * 4096


def test_double_quantization_reaches_the_traced_peak(memory: Estimate) -> None:
    for model, stack, linear in (("llama-3.1-70b", "hf", 68.45e9), ("llama-3.1-8b", "liger", 6.98e9)):
        runs = [
            memory(model=model, gpu="h200-sxm-141gb", method="qlora", stack=stack, quantization=quantization,
                   memory_metric="alloc")
            for quantization in ("nf4", "nf4dq")
        ]  # fmt: skip
        saved = [runs[0][term] - runs[1][term] for term in ("weights_gib", "memory_gib")]
        assert saved[0] * GIB == pytest.approx((0.5625 - 0.516) * linear, rel=0.01)
        assert saved[1] == pytest.approx(saved[0], rel=0.02), (model, stack)


def test_cudnn_attention_is_faster_where_flash_attention_is_not_made_for_the_card(speed: Estimate) -> None:
    # TRL, Qwen3 8B on a million tokens and eight H100: 606 s with FlashAttention, 373 s with cuDNN.
    shared = {
        "model": "qwen3-8b", "gpu_count": 8, "method": "full", "sharding": "fsdp", "context_parallel": 8,
        "seq_len": 1048576, "loss_kernel": "liger", "offload": "act", "stack": "hf",
    }  # fmt: skip
    gains = {
        gpu: speed(**shared, gpu=gpu, flash_attention=2)[SPEED] / speed(**shared, gpu=gpu)[SPEED]
        for gpu in ("h100-sxm-80gb", "a100-sxm-80gb")
    }
    assert gains["h100-sxm-80gb"] == pytest.approx(606 / 373, rel=0.2)
    assert gains["a100-sxm-80gb"] < 1.25


def test_cudnn_attention_takes_no_more_memory(memory: Estimate) -> None:
    shared = {**LLAMA_8B, "method": "lora", "micro_batch": 4, "seq_len": 2048, "checkpointing": "none"}
    kinds = [memory(**shared, flash_attention=kind)["memory_gib"] for kind in (0, 1, 2)]
    assert kinds[0] > kinds[1] == kinds[2]


def test_gradients_of_fsdps_units_are_whole_until_they_are_scattered(
    model: duckdb.DuckDBPyConnection, memory: Estimate
) -> None:
    # Lambda's guide: 52.9 GiB allocated, without weights and optimizer.
    large = memory(
        model="llama-3.1-405b", gpu="h100-sxm-80gb", gpu_count=64, method="full", sharding="fsdp",
        seq_len=4096, offload="cpu", stack="hf", memory_metric="alloc",
    )  # fmt: skip
    assert large["memory_gib"] == pytest.approx(52.9, rel=0.15)
    rows = model.execute(
        """
        WITH my_runs AS (
            SELECT unnest(['fsdp', 'zero3']) AS sharding, 'llama-3.1-8b' AS model, 'h100-sxm-80gb' AS gpu,
                8 AS gpu_count, 'full' AS method
        )
        SELECT first_gradient_bytes, last_gradient_bytes FROM memory_terms_of('my_runs') ORDER BY sharding
        """
    ).fetchall()
    layer, matrix = 218_112_000, VOCAB * 4096
    assert rows[0] == pytest.approx((2 * (layer + matrix), 2 * (layer + 2 * matrix)), rel=1e-3)
    assert rows[1] == (0, 0)


def test_the_stages_of_a_pipeline_are_uneven(model: duckdb.DuckDBPyConnection) -> None:
    # BigScience's 1.3B: 9 GB in four stages as in eight, whose first and last have the embeddings.
    rows = model.execute(
        """
        WITH my_runs AS (
            SELECT unnest([1, 4, 8]) AS pipeline_parallel, 'mpt-1b' AS model, 'v100-sxm-32gb' AS gpu,
                8 AS gpu_count, 'pretrain' AS method, 'fp16' AS training_precision, 'te' AS stack,
                'zero1' AS sharding, 1 AS micro_batch, 2048 AS seq_len
        )
        SELECT largest_stage * weight_bytes_per_gpu / weight_total_bytes, params_linear / params_total,
            vocab * hidden / params_total,
            (loss_phase_bytes - resident_bytes - kept_gradient_bytes - logits_bytes) / stored_bytes
        FROM memory_terms_of('my_runs') ORDER BY pipeline_parallel
        """
    ).fetchall()
    for stages, (share, linear, head, stored) in zip((1, 4, 8), rows, strict=True):
        assert share == pytest.approx(linear / stages + head, rel=1e-3)
        # The last stage, which has the logits, has one micro-batch of its own layers under way.
        assert stored == pytest.approx(1 / stages)


def test_hooks_of_fsdp_cost_the_host_time_in_each_layer(speed: Estimate) -> None:
    # IBM's Granite 3B of experts, eight sequences of 277 tokens: 1,951 tokens/s on one GPU, 1,840 on two.
    shared = {
        "model": "granite-3.0-3b-a800m", "gpu": "a100-sxm-80gb", "method": "full", "micro_batch": 8,
        "seq_len": 277, "grad_accum": 8, "stack": "hf",
    }  # fmt: skip
    alone, sharded = speed(**shared), speed(**shared, gpu_count=2, sharding="fsdp")
    assert 0 < sharded["host_seconds"] - alone["host_seconds"] <= 32 * 0.005
    assert sharded[SPEED] / alone[SPEED] == pytest.approx(1840 / 1951, rel=0.08)


def test_default_recipes_gain_less_from_newer_cards_than_vendors_engines(speed: Estimate) -> None:
    shared = {"model": "llama-3.1-8b", "method": "full", "micro_batch": 4, "seq_len": 4096, "gpu_count": 8}
    of = {
        (gpu, stack): speed(**shared, gpu=gpu, stack=stack)[SPEED]
        for gpu in ("a100-sxm-80gb", "h100-sxm-80gb", "b200-sxm-180gb", "mi300x")
        for stack in ("te", "liger")
    }
    gain = {gpu: of[gpu, "te"] / of[gpu, "liger"] for gpu, _ in of}
    assert gain["a100-sxm-80gb"] < gain["h100-sxm-80gb"] < gain["b200-sxm-180gb"]
    # torchao's and milabench's runs on AMD's cards are 30 to 40% slower than their matrix products say.
    assert gain["mi300x"] > 1.15 * gain["h100-sxm-80gb"]


def test_cards_without_peer_access_share_their_host(speed: Estimate) -> None:
    shared = {"model": "llama-3.1-8b", "method": "full", "sharding": "fsdp", "seq_len": 512}
    seconds = {
        (gpu, count): speed(**shared, gpu=gpu, gpu_count=count)["communication_seconds"]
        for gpu in ("rtx-4090", "l40s")
        for count in (2, 8)
    }
    # Eight receive 7/8 of the weights, two receive half, of a quarter of the bandwidth.
    assert seconds["rtx-4090", 8] / seconds["rtx-4090", 2] == pytest.approx(4 * 7 / 4, rel=0.1)
    assert seconds["l40s", 8] / seconds["l40s", 2] == pytest.approx(7 / 4, rel=0.1)
    lora = {"model": "llama-2-7b", "method": "lora", "gpu": "rtx-4090", "sharding": "fsdp"}
    evidence = [speed(**lora, gpu_count=count, stack="liger")["evidence"] for count in (4, 8)]
    assert evidence == ["interpolated", "extrapolated"]


def test_weights_of_8_bits_are_twice_as_much_to_read_as_of_4(speed: Estimate) -> None:
    shared = {"model": "llama-3.1-8b", "gpu": "a100-sxm-80gb", "method": "qlora", "stack": "hf"}
    seconds = [speed(**shared, quantization=form)["dequantization_seconds"] for form in ("int8", "nf4")]
    assert seconds[0] / seconds[1] == pytest.approx((1 + 2) / (0.5625 + 2))


def test_a_plain_loss_on_16_bit_logits_keeps_them_three_times(memory: Estimate) -> None:
    shared = {**LLAMA_8B, "method": "lora", "micro_batch": 4, "seq_len": 2048}
    assert memory(**shared, loss_kernel="16bit")["logits_gib"] * GIB == pytest.approx(TOKENS * VOCAB * 6)
    # universal-llm-trainer's Llama 3.1 8B on an H100: 36 GB reserved.
    trained = memory(
        model="llama-3.1-8b", gpu="h100-sxm-80gb", method="lora", lora_rank=8, micro_batch=2, seq_len=8192,
        grad_accum=32, loss_kernel="16bit", memory_metric="reserved", stack="hf",
    )  # fmt: skip
    assert trained["memory_gib"] == pytest.approx(33.5, rel=0.25)


def test_fp4_gains_most_where_the_card_has_most_of_it(speed: Estimate) -> None:
    shared = {"model": "llama-3.1-405b", "method": "pretrain", "stack": "te", "gpu_count": 64}
    gain = {
        gpu: speed(**shared, gpu=gpu, fp8=2)[SPEED] / speed(**shared, gpu=gpu, fp8=1)[SPEED]
        for gpu in ("gb200", "gb300")
    }
    assert 1 < gain["gb200"] < gain["gb300"]
