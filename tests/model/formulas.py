"""The formulas of docs/explanation/method.md and their sources, worked out a second time, run by run.

The SQL computes all runs at once; here one run passes through functions that set one named quantity after
another. Quantities are named like the columns of memory_terms_of and speed_terms_of, which must agree with
them. The catalogue, the traces and the fitted constants are read from the same tables.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import SimpleNamespace
from typing import Any

import duckdb

Row = dict[str, Any]
GIB = 1024**3
ALL_LINEAR = "q_proj+k_proj+v_proj+o_proj+gate_proj+up_proj+down_proj"
STACKS = {
    # kernels, kernels of the working set, loss kernel, bytes of an adapter's parameter
    "hf": ("eager", "eager", "hf", 4),
    "foak": ("fused", "fused", "fused", 4),
    "liger": ("fused", "fused", "liger", 4),
    "litgpt": ("eager", "eager", "litgpt", 2),
    "torchtune": ("eager", "compiled", "chunked", 2),
    "compile": ("compiled", "compiled", "chunked", 2),
    "te": ("engine", "compiled", "fused", 4),
    "mosaic": ("mosaic", "compiled", "hf", 4),
}
TRAINERS = ("hf", "foak", "liger")
FOREACH_BY_DEFAULT = ("hf", "foak", "liger", "litgpt")
BYTES_OF_A_WEIGHT = {"none": 2, "nf4": 0.5625, "nf4dq": 0.516, "gptq": 0.5195, "int8": 1}
EXPERTS_WITHOUT_ADAPTERS = (
    "gemma-4", "gpt-oss", "granite", "llama-4", "mistral-small-4", "nemotron", "qwen3.",
)  # fmt: skip
BEFORE_AMPERE = ("Kepler", "Maxwell", "Pascal", "Volta", "Turing")


@dataclass(frozen=True)
class Tables:
    """What the formulas read: rows of the catalogue, and the constants of one calibration."""

    models: dict[str, Row]
    gpus: dict[str, Row]
    recipes: dict[str, Row]
    bytes_of: Mapping[str, list[Row]]
    work_of: Mapping[tuple[str, str, str], dict[str, Row]]
    constants: SimpleNamespace
    newest_software: date


def read_tables(connection: duckdb.DuckDBPyConnection, calibration: str) -> Tables:
    """Read the tables, with the constants of a calibration."""

    def rows(query: str) -> list[Row]:
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    bytes_of, work_of = defaultdict(list), defaultdict(dict)
    for row in rows("FROM main.recipe_memory"):
        bytes_of[row["recipe"]].append(row)
    for row in rows("FROM main.recipe_work"):
        work_of[row["recipe"], row["attention"], row["part"]][row["quantity"]] = row
    constants = rows(f"SELECT name, value FROM main.model_constants WHERE calibration = '{calibration}'")
    (newest,) = rows("SELECT max(software_date) AS month FROM main.measured_runs")
    return Tables(
        newest_software=newest["month"],
        models={row["model"]: row for row in rows("FROM main.models")},
        gpus={row["gpu_id"]: row for row in rows("FROM main.gpus")},
        recipes={row["recipe"]: row for row in rows("FROM main.recipe_settings")},
        bytes_of=bytes_of,
        work_of=work_of,
        constants=SimpleNamespace(**{row["name"]: row["value"] for row in constants}),
    )


def work_out(given: Row, tables: Tables) -> SimpleNamespace:
    """Return every quantity of a run with these settings."""
    run = SimpleNamespace(k=tables.constants, tables=tables)
    run.m = SimpleNamespace(**tables.models[given["model"]])
    run.g = SimpleNamespace(**tables.gpus[given["gpu"]])
    for step in (
        settle, find_recipe, describe_model, describe_run, split, remember_states, remember_activations,
        find_peak, rate, time_tokens, time_micro_step, time_links, time_step,
    ):  # fmt: skip
        step(run) if step is not settle else step(run, given)
    return run


def settle(run: SimpleNamespace, given: Row) -> None:
    """Fill in the settings that a run leaves open."""
    said = {name: value for name, value in given.items() if value is not None}
    defaults = {
        "method": "lora", "gpu_count": 1, "stack": "hf", "lora_rank": 16, "lora_targets": ALL_LINEAR,
        "optimizer": "adamw", "micro_batch": 1, "seq_len": 2048, "grad_accum": 1, "checkpointing": "full",
        "flash_attention": 1, "pipeline_parallel": 1, "context_parallel": 1, "fp8": 0, "offload": "",
        "memory_metric": "smi", "lora_dropout": None, "software_date": None, "looped_sequences": 0,
        "virtual_pipeline": None,
    }  # fmt: skip
    run.__dict__.update(defaults | said)
    run.is_full, run.is_quantized = run.method in ("full", "pretrain"), run.method == "qlora"
    run.steps_foreach = run.optimizer == "adamw_foreach"
    run.steps_foreach |= run.optimizer == "adamw" and run.stack in FOREACH_BY_DEFAULT
    run.has_adapters = not run.is_full
    stated = said.get("quantization", "none")
    run.quantization = "nf4" if run.is_quantized and stated == "none" else stated
    run.kernels, run.working_kernels, stack_loss_kernel, adapter_bytes = STACKS[run.stack]
    run.stack_loss_kernel, run.is_trainer = stack_loss_kernel, run.stack in TRAINERS
    run.loss_kernel = said.get("loss_kernel", stack_loss_kernel)
    run.adapter_bytes = said.get("adapter_bytes", adapter_bytes)
    run.kbit_upcast = said.get("kbit_upcast", run.is_quantized and run.stack == "hf")
    run.autocast = said.get("autocast", run.is_trainer)
    run.training_precision = said.get("training_precision", "amp" if run.is_full else "bf16")
    is_zero = str(said.get("sharding")).startswith("zero")
    is_16bit = said.get("training_precision") in (None, "bf16", "fp16")
    if run.is_trainer and run.is_full and is_zero and is_16bit:
        run.training_precision = "deepspeed_bf16"
    run.weight_bytes = said.get("weight_bytes", 4 if said.get("training_precision") == "fp32" else 2)
    usual = "zero1" if run.stack == "te" else "fsdp" if run.is_full else "ddp"
    run.sharding = said.get("sharding", usual if run.gpu_count > 1 else "none")
    run.node_count = said.get("node_count", math.ceil(run.gpu_count / run.g.max_gpus_per_node))
    is_rack_node = run.g.nvlink_topology == "switched" and run.g.max_gpus_per_node == 4
    new = 3200 if run.g.year >= 2022 else 1600
    usual = 14400 if is_rack_node and run.gpu_count <= 72 else new
    run.node_network_gbps = said.get("node_network_gbps", usual)
    stages, sequences = run.pipeline_parallel, run.context_parallel
    run.tensor_parallel = said.get("tensor_parallel", 1)
    run.expert_parallel = said.get("expert_parallel", 1)
    if run.stack == "te":
        if "expert_parallel" not in said and run.m.experts > 1:
            run.expert_parallel = min(run.m.experts, run.gpu_count / (run.tensor_parallel * stages))
        if "tensor_parallel" not in said and "sharding" not in said and run.gpu_count > 1:
            # The least power of two at which the state of the weights takes 80% of the memory.
            state_gib = run.m.params_total * (6 if run.is_full else 2) / GIB
            groups, needed = 1, state_gib / (0.8 * run.g.usable_memory_gib)
            while groups < needed:
                groups *= 2
            run.tensor_parallel = min(8, run.gpu_count / (stages * sequences), groups)
    days = (run.tables.newest_software - run.software_date).days if run.software_date else 0
    run.software_age_years = min(3, max(0, days / 365.25))
    mlp = ("gate_proj", "up_proj", "down_proj")
    run.adapts_mlp = run.has_adapters and any(name in run.lora_targets for name in mlp)


def find_recipe(run: SimpleNamespace) -> None:
    """Find the traced recipe: the one that the run names, or the one whose settings it has.

    Sharding splits states over GPUs but leaves a rank's activations as they are: a sharded run has the
    activations of a run on one GPU, where the code is the same. Likewise, a run over quantized weights that
    are not prepared for training has the activations of one over whole weights.
    """
    lacks_traces = run.is_quantized and run.stack == "hf" and not run.kbit_upcast
    method = "lora" if lacks_traces else "full" if run.method == "pretrain" else run.method
    wanted = {
        "stack": run.stack, "method": method,
        "quantization": "none" if lacks_traces else run.quantization.replace("nf4dq", "nf4"),
        "kbit_upcast": run.kbit_upcast if run.is_quantized else 0, "sharding": "none",
        "training_precision": run.training_precision, "checkpointing": run.checkpointing,
        "flash_attention": min(1, run.flash_attention), "loss_kernel": run.loss_kernel,
        "offload": run.offload, "adapter_bytes": run.adapter_bytes, "adapts_mlp": run.adapts_mlp,
    }  # fmt: skip

    def has_settings(recipe: Row) -> bool:
        usual = {
            "loss_kernel": run.stack_loss_kernel, "offload": "", "adapter_bytes": run.adapter_bytes,
            "adapts_mlp": 0,
        }  # fmt: skip
        stated = {name: usual.get(name) if recipe[name] is None else recipe[name] for name in wanted}
        return stated == wanted and ("inbwd" in recipe["optimizer"]) == ("inbwd" in run.optimizer)

    whole = run.fp8 == 0 and run.tensor_parallel == run.pipeline_parallel == run.context_parallel == 1
    is_replica = run.sharding in ("none", "ddp")
    holds_weights = run.sharding in ("zero1", "zero2") and not (run.is_quantized and run.kbit_upcast)
    whole = whole and (is_replica or holds_weights)
    found = [
        name for name, recipe in run.tables.recipes.items()
        if recipe["is_mapped"] and whole and has_settings(recipe)
    ]  # fmt: skip
    named = vars(run).get("recipe")
    run.recipe = named or (found[0] if found else None)
    traced = run.tables.recipes.get(run.recipe, {})
    run.recipe_grad_accum = traced.get("grad_accum")
    run.recipe_sharding = traced.get("sharding", "none")
    run.is_traced_unquantized = lacks_traces and not named and bool(found)
    run.is_traced_whole = run.recipe is not None and (is_replica or run.recipe_sharding == run.sharding)
    run.is_traced_whole = run.is_traced_whole and not run.is_traced_unquantized
    run.untraced_dropout = 0
    if run.lora_dropout is not None and run.has_adapters:
        run.untraced_dropout = (run.lora_dropout > 0) - ((traced.get("lora_dropout") or 0) > 0)
    is_fused = run.optimizer == "adamw" and run.stack not in FOREACH_BY_DEFAULT
    run.has_recipe_optimizer = traced.get("optimizer") == ("adamw_fused" if is_fused else run.optimizer)
    run.has_proven_recipe = traced.get("agreeing_runs", 0) >= 3


def window_length(seq_len: float, window: float) -> float:
    """Tokens that layers with a window attend to, as if they had none: twice the mean number of keys."""
    if seq_len <= window:
        return seq_len
    keys = window**2 / 2 + (seq_len - window) * window
    return 2 * keys / seq_len


def describe_model(run: SimpleNamespace) -> None:
    """Set the widths of a layer and the parameters that are trained, active and adapted."""
    m = run.m
    dense_layers, sparse_layers = m.dense_layers or 0, m.layers - (m.dense_layers or 0)

    def mean(sparse: float, dense: float) -> float:
        return (sparse_layers * sparse + dense_layers * dense) / m.layers

    is_mixture = m.experts > 1
    for name in ("layers", "hidden", "intermediate", "heads", "vocab", "params_total", "params_linear"):
        setattr(run, name, getattr(m, name))
    run.runs_every_expert = run.is_trainer and m.model.startswith("llama-4-")
    run.adds_expert_biases = run.kernels == "engine" and m.model.startswith("gpt-oss-")
    run.slices_experts = run.stack == "hf" and m.model.startswith("granite-")
    run.experts_active = m.experts if run.runs_every_expert else m.experts_active
    run.params_active = m.params_total if run.runs_every_expert else m.params_active
    run.params_unquantized = m.params_total - m.params_linear
    run.linear_active = run.params_active - run.params_unquantized
    shared, dense_width = m.shared_intermediate or 0, m.dense_intermediate or 0
    head_width = (m.head_dim + (m.value_head_dim or m.head_dim)) / 2
    run.query_width, run.key_value_width = m.heads * head_width, m.kv_heads * head_width
    run.mlp_tensors = 4 if m.gated_mlp else 2
    run.active_intermediate = mean(run.experts_active * m.intermediate + shared, dense_width)
    full, linear = m.full_attention_layers, m.linear_attention_layers or 0
    if full is None:
        full = 0 if m.sliding_window else m.layers - linear
    length = run.seq_len / max(1, run.looped_sequences)
    seen = full * length + linear * min(length, 512)
    if m.sliding_window:
        seen += (m.layers - full - linear) * window_length(length, m.sliding_window)
    run.attended_length = seen / m.layers
    run.is_hybrid = linear > 0
    expert_params = sparse_layers * m.experts * m.hidden * m.intermediate * (3 if m.gated_mlp else 2)
    run.expert_params = min(m.params_linear, expert_params) if is_mixture else 0
    unties = run.stack == "litgpt" and m.tied_embeddings
    run.untied_params = m.vocab * m.hidden if unties else 0
    describe_adapters(run, mean, shared, dense_width)


def describe_adapters(run: SimpleNamespace, mean: Any, shared: float, dense_width: float) -> None:
    """Set what adapters add: r x (in + out) parameters for each adapted matrix (arXiv 2106.09685)."""
    m = run.m
    is_mixture, is_fused = m.experts > 1, run.stack == "liger" and m.experts > 1
    excluded = run.is_trainer and m.model.startswith(EXPERTS_WITHOUT_ADAPTERS)
    run.adapts_experts = is_mixture and not excluded
    run.folds_adapters = int(is_fused and run.adapts_experts and run.adapts_mlp)
    if run.adapts_experts:
        mlps = mean(m.experts, 0)
        width = mlps * m.intermediate
    elif is_mixture:
        mlps, width = mean(shared > 0, 1), mean(shared, dense_width)
        if m.dense_layers is None:
            mlps, width = float(shared > 0), shared
    else:
        mlps, width = 1, m.intermediate
    targets = [] if run.is_full else [name for name in run.lora_targets.split("+") if name != "lm_head"]
    query, key_value = run.query_width, run.key_value_width

    def sides(target: str, share: float, doubled: int) -> tuple[float, float]:
        """Inputs and outputs of a layer's adapters; fused gate and up projections double the rank."""
        wide = (m.hidden * mlps * share, width * share * doubled)
        return {
            "q_proj": (m.hidden, query), "k_proj": (m.hidden, key_value), "v_proj": (m.hidden, key_value),
            "o_proj": (query, m.hidden), "qkv_fused": (m.hidden, query + 2 * key_value),
            "gate_proj": wide, "up_proj": wide, "down_proj": (width * share, m.hidden * mlps * share),
        }[target]  # fmt: skip

    adapts_head = "lm_head" in run.lora_targets
    stored = sum(sum(sides(target, 1, 1 + run.folds_adapters)) for target in targets)
    head = m.hidden + m.vocab if adapts_head else 0
    run.adapter_params = 0 if run.is_full else run.lora_rank * (m.layers * stored + head)
    # A token passes the adapters of its own experts; folded adapters process no token.
    share = m.experts_active / m.experts if run.adapts_experts else 1
    share *= 1 - run.folds_adapters
    run.adapted_in = sum(sides(target, share, 1)[0] for target in targets)
    run.adapted_out = sum(sides(target, share, 1)[1] for target in targets)
    run.adapters = len(targets)
    run.folded_bytes = 2 * run.expert_params if run.folds_adapters else 0
    run.unquantized_share = run.expert_params / m.params_linear if is_fused else 0
    run.quantized_bytes = BYTES_OF_A_WEIGHT[run.quantization]
    narrow = run.quantized_bytes if run.is_quantized else 2
    run.linear_width = run.unquantized_share * 2 + (1 - run.unquantized_share) * narrow
    kernels = ("fused", "chunked", "liger", "litgpt", "titan", "fp32std", "16bit", "outside")
    kernel = run.loss_kernel if run.loss_kernel in kernels else "hf"
    plain = {"titan": 2 + 2, "fp32std": 3 * 4, "16bit": 3 * 2}
    bytes_at_loss = plain[kernel] if kernel in plain else getattr(run.k, f"logits_{kernel}")
    if run.kernels == "engine" and kernel == "fused":
        bytes_at_loss = 2 + 4  # Megatron casts the logits to fp32, and works on that copy in place
    run.logit_bytes = bytes_at_loss + (4 if adapts_head else 0)


def describe_run(run: SimpleNamespace) -> None:
    """Set the switches that follow from the settings, and one layer's 16-bit activations per token."""
    m = run.m
    run.shards_weights = run.sharding in ("fsdp", "zero3")
    run.shards_gradients = run.shards_weights or run.sharding == "zero2"
    run.shards_optimizer = run.shards_gradients or run.sharding == "zero1"
    run.has_dropout = bool(run.lora_dropout)
    targets = set() if run.is_full else set(run.lora_targets.split("+"))
    # A 16-bit copy of each adapter's input, and a byte of mask per element. LitGPT has one adapter for query,
    # key and value, which is counted once for each of them that is adapted.
    again = len(targets & {"q_proj", "k_proj", "v_proj"}) - 1 if run.stack == "litgpt" else 0
    run.dropout_bytes_per_token = 3 * (run.adapted_in - max(0, again) * m.hidden)
    in_fp32 = run.training_precision in ("amp", "fp32", "fp16")
    run.full_weight_bytes = 4 if in_fp32 else run.weight_bytes
    # Weights in 16 bits, of which the optimizer keeps a master in fp32; Megatron sums gradients in fp32, too.
    run.has_gradient_buffer = run.stack == "te" and run.is_full and run.training_precision == "amp"
    run.has_masters = run.has_gradient_buffer or run.training_precision == "deepspeed_bf16"
    run.trained_weight_bytes = 2 if run.has_masters else run.full_weight_bytes
    upcasts = run.kbit_upcast == 1 or (run.is_full and run.training_precision == "amp")
    run.fp32_residual = int(
        run.training_precision == "fp32" or (run.is_trainer and not run.shards_weights and upcasts)
    )
    run.doubles_checkpoints = run.is_trainer and run.sharding == "fsdp" and run.has_adapters
    # arXiv 2205.05198; a mixture also keeps what goes into and comes out of each chosen expert.
    of_experts = 2 * run.experts_active if m.experts > 1 else 0
    attention = 8 * m.hidden + 3 * run.query_width + 3 * run.key_value_width
    if run.stack == "litgpt":  # as many heads of keys and of values as of queries
        attention += 2 * run.query_width - 2 * run.key_value_width
    mlp = of_experts * m.hidden + run.mlp_tensors * run.active_intermediate
    run.attention_bytes_per_token = 2 * attention
    run.layer_bytes_per_token = 2 * (attention + mlp)
    # Experts are in the layers that are not dense; shared experts do not count.
    run.sparse_share = 1 - (m.dense_layers or 0) / m.layers
    routed = 2 * run.sparse_share * run.experts_active * (2 * m.hidden + run.mlp_tensors * m.intermediate)
    run.routed_share = routed / run.layer_bytes_per_token if m.experts > 1 else 0
    run.frozen_input_bytes_per_token = 0 if run.is_full else 2 * unneeded_inputs(run, targets)


def unneeded_inputs(run: SimpleNamespace, targets: set[str]) -> float:
    """Return the width of a layer's inputs of products of which no weight and no adapter is trained.

    An adapter with dropout needs none either, but what dropout makes of it.
    """
    inputs = (
        (run.hidden, {"q_proj", "k_proj", "v_proj", "qkv_fused"}), (run.query_width, {"o_proj"}),
        (run.hidden, {"gate_proj", "up_proj"}), (run.active_intermediate, {"down_proj"}),
    )  # fmt: skip
    return sum(width for width, products in inputs if run.has_dropout or not products & targets)


def split(run: SimpleNamespace) -> None:
    """Set the groups of GPUs over which tokens and states are split."""
    run.micro_step_tokens = run.micro_batch * run.seq_len / run.context_parallel
    run.model_parallel = run.tensor_parallel * run.pipeline_parallel
    run.data_parallel = run.gpu_count / run.model_parallel
    run.model_shards = run.model_parallel
    if run.expert_parallel > 1 and run.expert_params:
        on_one = run.params_total - run.expert_params
        on_one += run.expert_params / min(run.expert_parallel, run.data_parallel)
        run.model_shards = run.model_parallel * run.params_total / on_one
    for state in ("weight", "gradient", "optimizer"):
        shards = getattr(run, f"shards_{state}s" if state != "optimizer" else "shards_optimizer")
        setattr(run, f"{state}_shards", run.gpu_count if shards else run.model_shards)
    run.gathers_weights = run.shards_weights and run.data_parallel > 1


def traced_terms(run: SimpleNamespace) -> tuple[dict[str, float], dict[str, float]] | None:
    """Return the bytes of a traced recipe, fixed and per token, by moment or purpose; None if not traced."""
    m = run.m
    if run.recipe is None or m.experts > 1 or not m.gated_mlp or m.model.startswith("gemma-2-"):
        return None
    adapted = 0 if run.is_full else run.lora_rank * len(run.lora_targets.split("+"))
    trained = m.params_total if run.is_full else run.adapter_params
    trained_of_layers = m.params_linear if run.is_full else run.adapter_params
    of_token = {
        "hidden": m.hidden, "query": run.query_width, "key value": run.key_value_width,
        "intermediate": run.active_intermediate, "scores": m.heads * run.seq_len, "adapters": adapted,
        "heads": m.heads,
    }  # fmt: skip
    of_token |= {f"layers x {name}": m.layers * value for name, value in of_token.items()}
    of_token |= {"vocabulary": m.vocab, "length": run.seq_len, "token": 1}
    fixed = {
        "linear parameters": m.params_linear,
        "quantized linear bytes": m.params_linear * (run.quantized_bytes if run.is_quantized else 0),
        "embedding parameters": m.vocab * m.hidden,
        "head parameters": 0 if m.tied_embeddings else m.vocab * m.hidden,
        "tied parameters": m.vocab * m.hidden if m.tied_embeddings else 0,
        "norm parameters": m.layers * m.hidden, "trained parameters": trained, "layers": m.layers,
        "linear parameters of a layer": m.params_linear / m.layers,
        "trained parameters of a layer": trained_of_layers / m.layers,
        "matrix of the MLP": m.hidden * m.intermediate, "matrix of the query": m.hidden * run.query_width,
        "rotary table": run.seq_len * run.query_width / m.heads, "one": 1,
    }  # fmt: skip
    recipe = run.tables.recipes[run.recipe]
    traced_form = "nf4dq" if recipe["double_quantization"] else recipe["quantization"]
    totals: tuple[dict[str, float], dict[str, float]] = (defaultdict(float), defaultdict(float))
    for row in run.tables.bytes_of[run.recipe]:
        feature, size = row["feature"], row["bytes"]
        if recipe["method"] == "qlora" and (row["category"], feature) == ("weights", "linear parameters"):
            feature, size = "quantized linear bytes", size / BYTES_OF_A_WEIGHT[traced_form]
        for term in terms_of(row["moment"], row["category"]):
            if feature in fixed:
                totals[0][term] += size * fixed[feature]
            if feature in of_token:
                totals[1][term] += size * of_token[feature]
    # As in SQL, to a thousandth of a byte: per token, that is many tokens' bytes.
    fixed, of_token = ({term: round(size, 3) for term, size in each.items()} for each in totals)
    return defaultdict(float, fixed), defaultdict(float, of_token)


def terms_of(moment: str, category: str) -> list[str]:
    """Return the terms to which bytes of a trace belong: of the moment, and the one under which they show."""
    if moment == "optimizer_step":
        own = ("weights", "adapters", "gradients", "optimizer", "workspace")
        return [category if category in own else "step_copy"]
    shown = {
        ("loss", "stored_activations"): "stored", ("loss_backward", "logits"): "logits",
        ("last_layer_backward", "working_set"): "working", ("last_layer_backward", "temporaries"): "working",
        ("last_layer_backward", "hidden_temporaries"): "working",
    }.get((moment, category))  # fmt: skip
    return [term for term in (moment if category != "optimizer" else None, shown) if term]


def remember_states(run: SimpleNamespace) -> None:
    """Set the bytes of weights, gradients and optimizer: arXiv 1910.02054."""
    m, k = run.m, run.k
    weights = m.params_total + run.untied_params
    if run.is_full:
        run.weight_total_bytes = weights * run.trained_weight_bytes
    elif run.is_quantized:
        rest = 4 if run.kbit_upcast == 1 else run.weight_bytes
        run.weight_total_bytes = m.params_linear * run.linear_width
        run.weight_total_bytes += (run.params_unquantized + run.untied_params) * rest
    else:
        run.weight_total_bytes = weights * run.weight_bytes
    run.trainable_params = weights if run.is_full else run.adapter_params
    run.gradient_bytes = run.trained_weight_bytes if run.is_full else run.adapter_bytes
    run.gradient_bytes = 4 if run.has_gradient_buffer else run.gradient_bytes
    remember_optimizer(run)
    run.largest_tensor_params = max(m.vocab * m.hidden, m.hidden * m.intermediate)
    run.embedding_params = run.params_unquantized / (1 if m.tied_embeddings else 2)
    run.context_gib = k.context_before_2020_gib if run.g.year < 2020 else k.context_gib
    traced = traced_terms(run)
    run.is_traced = traced is not None
    run.has_traced_state = run.is_traced and run.is_traced_whole
    run.fixed_of, run.token_of = traced or ({}, {})
    is_own_step = run.has_traced_state and run.has_recipe_optimizer
    in_backward = "inbwd" in run.optimizer
    gradients = run.largest_tensor_params if in_backward else run.trainable_params
    states = {
        "weight": run.weight_total_bytes / run.weight_shards,
        "adapter": 0 if run.is_full else run.adapter_params * run.adapter_bytes / run.weight_shards,
        "gradient": gradients * run.gradient_bytes / run.gradient_shards,
        "optimizer": run.trainable_params * run.optimizer_bytes / run.optimizer_shards,
        "step_copy": run.trainable_params * run.step_copy_bytes / run.optimizer_shards * (not in_backward),
    }
    if run.has_traced_state:
        states |= {name: run.fixed_of[f"{name}s"] for name in ("weight", "adapter", "gradient")}
    if is_own_step:
        states["optimizer"] = run.fixed_of["optimizer"]
        states["step_copy"] = run.fixed_of["step_copy"] + run.token_of["step_copy"] * run.micro_step_tokens
    for name, size in states.items():
        setattr(run, f"{name}_bytes_per_gpu", size)
    remember_copies(run)


def remember_copies(run: SimpleNamespace) -> None:
    """Set what holds weights or gradients a second time: autocast's copies, and the buckets of DDP."""
    is_engine, width = run.kernels == "engine", run.full_weight_bytes if run.is_full else run.weight_bytes
    # Quantized weights become 16-bit anyway, and FSDP gathers in 16 bits; engines and traces have their own.
    is_cast = (run.autocast == 1 or run.training_precision == "amp") and run.training_precision != "fp32"
    is_cast = is_cast and width > 2 and not (run.is_quantized or run.gathers_weights)
    is_cast = is_cast and not (is_engine or run.kernels == "mosaic" or run.has_traced_state)
    run.cast_weight_bytes = 2 * run.params_linear / run.model_shards if is_cast else 0
    # arXiv 2006.15704; the traces of a run under DDP hold the buckets already.
    has_buckets = run.sharding == "ddp" and run.recipe_sharding == "none" and not is_engine
    gradients = run.trainable_params * run.gradient_bytes / run.model_shards
    run.bucket_bytes = gradients if has_buckets else 0


def remember_optimizer(run: SimpleNamespace) -> None:
    """Set the bytes per trained parameter of the optimizer's state, and of the copies in its step."""
    m = run.m
    width = run.full_weight_bytes if run.is_full else run.adapter_bytes
    width = 4 if run.has_masters else width
    if "8bit" in run.optimizer:
        run.optimizer_bytes = 2.06
        if run.is_full and run.is_trainer:  # the moments of embeddings stay in fp32
            run.optimizer_bytes += (8 - 2.06) * m.vocab * m.hidden / m.params_total
        run.optimizer_bytes += 4 if run.has_masters else 0
    else:  # two moments, and the master
        run.optimizer_bytes = (3 if run.has_masters else 2) * width
    if run.optimizer.startswith("paged") and run.memory_metric != "smi":
        run.optimizer_bytes = 0
    run.step_copy_bytes = 4 if run.has_masters and not run.has_gradient_buffer else 0
    if run.steps_foreach:
        run.step_copy_bytes += run.k.foreach_copy * foreach_copies(run.software_date) * width


def foreach_copies(software_date: date | None) -> int:
    """Return how many copies of the updates PyTorch's foreach AdamW holds: two in its first version, 2.0."""
    if software_date is None or software_date >= date(2023, 10, 1):
        return 1
    return 2 if software_date >= date(2023, 4, 1) else 0


def remember_activations(run: SimpleNamespace) -> None:
    """Set the bytes of activations, logits and whole layers: arXiv 2205.05198."""
    m, k, tokens = run.m, run.k, run.micro_step_tokens
    is_eager, is_whole = run.flash_attention == 0, run.checkpointing == "none"
    run.checkpoint_bytes_per_token = m.layers * m.hidden * (4 if run.fp32_residual else 2)
    of_kernels = {"compiled": k.stored_compiled, "engine": k.stored_engine, "mosaic": k.stored_engine}
    stores_more = run.is_quantized and run.quantization != "gptq"
    stores_more &= bool(run.software_date) and run.software_date < date(2024, 7, 1)
    dropout = run.dropout_bytes_per_token if run.has_dropout and run.has_adapters else 0
    layer = run.layer_bytes_per_token - (0 if stores_more else run.frozen_input_bytes_per_token)
    layer *= k.stored_eager * of_kernels.get(run.kernels, 1)
    layer *= 2 if run.training_precision == "fp32" else 1
    run.stored_bytes_per_token = m.layers * (layer + dropout)
    run.selective_bytes_per_token = m.layers * selected_bytes(run)
    scores = m.heads * run.seq_len if is_eager else 0
    # Megatron keeps a softmax, a mask of a byte and what dropout makes of it, and adds a gradient.
    is_engine = run.kernels == "engine"
    of_score = 2 + 1 + 2 if is_engine else k.stored_eager_scores
    run.stored_score_bytes_per_token = m.layers * scores * of_score
    of_score = 2 + 1 + 2 + 2 if is_engine else k.working_eager_scores
    working = "stored" if is_whole else run.working_kernels
    run.working_bytes_per_token = run.layer_bytes_per_token * getattr(k, f"working_{working}")
    run.working_bytes_per_token += scores * of_score + (0 if is_whole else dropout)
    if run.fp32_residual:
        run.working_bytes_per_token += k.working_fp32_residual * 2 * 8 * m.hidden
    run.unpacked_bytes = k.working_quantized * 2 * m.hidden * m.intermediate if run.is_quantized else 0
    # A layer's experts with their adapters added, unless all layers' are stored, and their gradients.
    run.unpacked_bytes += run.folded_bytes / m.layers * (2 if run.checkpointing == "full" else 1)
    run.logits_bytes_per_token = m.vocab * run.logit_bytes
    run.stored_bytes = {
        "none": run.stored_bytes_per_token + run.stored_score_bytes_per_token,
        "sac": run.checkpoint_bytes_per_token + run.selective_bytes_per_token,
        "full": run.checkpoint_bytes_per_token * (min(m.layers, k.offloading_layers) / m.layers
            if "act" in run.offload else 1),
    }[run.checkpointing] * tokens / run.tensor_parallel  # fmt: skip
    run.stored_bytes += 0 if run.checkpointing == "full" else run.folded_bytes
    run.working_bytes = run.working_bytes_per_token * tokens + run.unpacked_bytes
    run.working_bytes /= run.tensor_parallel
    run.logits_bytes = run.logits_bytes_per_token * tokens / run.tensor_parallel
    # The parts of an input, and of its gradient, that sequence parallelism gathers from the other ranks.
    others = (run.tensor_parallel - 1) / run.tensor_parallel
    run.gathered_input_bytes = 2 * 2 * m.hidden * tokens * others
    run.dropout_layer_bytes = run.untraced_dropout * (run.dropout_bytes_per_token if run.has_adapters else 0)
    if run.autocast == 1:  # which keeps the copy anyway
        run.dropout_layer_bytes /= 3
    run.dropout_stored_bytes = m.layers * run.dropout_layer_bytes if is_whole else 0
    run.dropout_working_bytes = 0 if is_whole else run.dropout_layer_bytes
    if run.is_traced:
        for name, dropout in (
            ("stored", run.dropout_stored_bytes), ("working", run.dropout_working_bytes), ("logits", 0),
        ):  # fmt: skip
            size = run.fixed_of[name] + (run.token_of[name] + dropout) * tokens
            setattr(run, f"{name}_bytes", size)
        run.working_bytes += run.unpacked_bytes if run.is_traced_unquantized else 0
    if run.doubles_checkpoints:
        copies = k.sharded_adapter_copies * run.checkpoint_bytes_per_token
        run.working_bytes += copies * tokens / run.tensor_parallel
    remember_units(run)


def selected_bytes(run: SimpleNamespace) -> float:
    """Return the bytes per token and layer that selective checkpointing keeps besides the layer's input."""
    if run.kernels in ("engine", "mosaic"):  # all but the MLP's
        return float(run.k.stored_engine * run.k.stored_eager * run.attention_bytes_per_token)
    attention, query = run.query_width, run.query_width
    if run.m.experts > 1:  # of grouped products, torchtitan keeps none
        return float(2 * (attention + query + run.key_value_width))
    products = query + run.key_value_width + run.active_intermediate + run.hidden
    return float(2 * (attention + products / (6 if run.fp8 == 2 else 1)))


def remember_units(run: SimpleNamespace) -> None:
    """Set what a GPU holds of the units that FSDP gathers, and of a pipeline's first or last stage."""
    m, k = run.m, run.k
    run.root_bytes = run.units_bytes = run.whole = 0.0
    if run.gathers_weights:
        run.root_bytes = run.params_unquantized * 2 / run.model_parallel
        layer = m.params_linear / m.layers * run.linear_width
        run.units_bytes = k.fsdp_layers * layer / run.tensor_parallel
        if run.pipeline_parallel > 1 and run.kernels == "compiled":
            # torchtitan gathers a stage once for all micro-batches, and keeps its gradients whole in fp32.
            whole = run.linear_width + (4 if run.is_full else 0)
            run.units_bytes = m.params_linear * whole / run.model_parallel
    if run.gathers_weights and run.is_full and run.sharding == "fsdp":
        run.whole = 2 / run.model_parallel  # gradients of a unit before they are scattered
    run.first_gradient_bytes = run.whole * (m.params_linear / m.layers + m.vocab * m.hidden)
    run.last_gradient_bytes = run.whole * (m.params_linear / m.layers + run.params_unquantized)
    run.largest_stage = 1
    if run.pipeline_parallel > 1:
        extra = max(0, run.embedding_params - run.params_unquantized / run.pipeline_parallel)
        run.largest_stage += extra / run.tensor_parallel * run.model_shards / m.params_total


def find_peak(run: SimpleNamespace) -> None:
    """Set the phases of a step, their peak, and what allocator and process add."""
    k, tokens = run.k, run.micro_step_tokens
    run.on_gpu = 0 if "cpu" in run.offload else 1
    stage = run.on_gpu * run.largest_stage
    weights = stage * (run.weight_bytes_per_gpu + run.optimizer_bytes_per_gpu)
    run.resident_bytes = weights + run.adapter_bytes_per_gpu + run.bucket_bytes
    keeps_gradients = run.grad_accum > 1 or run.has_gradient_buffer
    kept = stage * run.gradient_bytes_per_gpu if keeps_gradients else 0
    run.kept_gradient_bytes = kept
    base = run.resident_bytes + run.working_bytes + run.root_bytes + run.units_bytes
    base += run.gathered_input_bytes
    run.loss_phase_bytes = run.resident_bytes + run.stored_bytes / run.pipeline_parallel
    run.loss_phase_bytes += run.logits_bytes + run.gathered_input_bytes + run.root_bytes + kept
    run.backward_start_bytes = base + run.stored_bytes + kept + run.first_gradient_bytes
    # Autocast caches copies of trained weights; what is not checkpointed keeps copies of any weights.
    is_stored = run.checkpointing == "none"
    run.loss_phase_bytes += run.cast_weight_bytes if run.is_full or is_stored else 0
    run.backward_start_bytes += run.cast_weight_bytes / (1 if is_stored else run.layers)
    run.backward_end_bytes = base + run.stored_bytes / run.layers + run.last_gradient_bytes
    run.backward_end_bytes += stage * run.gradient_bytes_per_gpu
    step = stage * (run.gradient_bytes_per_gpu + run.step_copy_bytes_per_gpu)
    run.optimizer_phase_bytes = run.resident_bytes + step
    if run.has_traced_state:
        stored, working = run.dropout_stored_bytes, run.dropout_working_bytes

        def at(moment: str, dropout: float) -> float:
            peaks = (run.fixed_of[name] + run.token_of[name] * tokens for name in (moment, f"{moment}_2"))
            return max(peaks) + dropout * tokens

        gradients = (run.recipe_grad_accum - 1) * run.gradient_bytes_per_gpu
        always = run.optimizer_bytes_per_gpu + run.bucket_bytes
        states = always + kept - gradients
        forward, loss = at("forward_layers", stored + working), at("loss", stored)
        run.loss_phase_bytes = max(forward, loss) + states
        after_loss, last = at("loss_backward", stored), at("last_layer_backward", stored + working)
        run.backward_start_bytes = max(after_loss, last) + states
        first = at("first_layer_backward", run.dropout_layer_bytes)
        run.backward_end_bytes = first + always
        run.optimizer_phase_bytes += run.fixed_of["workspace"]
    phases = {
        "loss": run.loss_phase_bytes, "start of backward": run.backward_start_bytes,
        "end of backward": run.backward_end_bytes, "optimizer step": run.optimizer_phase_bytes,
    }  # fmt: skip
    run.peak_bytes = max(phases.values())
    run.peak_phase = max(phases, key=phases.__getitem__)
    run.process_gib = run.context_gib + (k.context_multi_gpu_gib if run.gpu_count > 1 else 0)
    run.transient_bytes = run.logits_bytes + run.working_bytes
    # FSDP2, of torchtune and torchtitan, frees gathered units in time, and leaves no gaps.
    leaves_gaps = run.gathers_weights and run.stack not in ("torchtune", "compile")
    run.sharded_bytes = run.root_bytes + run.units_bytes + run.stored_bytes if leaves_gaps else 0
    run.allocated_gib = run.peak_bytes / GIB + (0 if run.has_traced_state else k.allocated_base_gib)
    lost = (k.reserved_transient * run.transient_bytes + k.reserved_sharded * run.sharded_bytes) / GIB
    left = run.g.usable_memory_gib - run.process_gib
    run.reserved_gib = min(run.allocated_gib * k.reserved_ratio + lost, max(left, run.allocated_gib))
    whole = {"alloc": run.allocated_gib, "reserved": run.reserved_gib}
    run.memory_gib = whole.get(run.memory_metric, run.reserved_gib + run.process_gib)
    run.is_proven = run.has_proven_recipe and run.has_traced_state
    # Experts' ranks share the tokens unevenly: of eight, one gets 1.09 times the average on top.
    crowd = run.working_bytes + (run.stored_bytes if is_stored else 0)
    run.crowded_bytes = 1.25 * (1 - 1 / run.expert_parallel) * run.routed_share * crowd
    crowded = max(run.loss_phase_bytes, run.backward_start_bytes) + run.crowded_bytes
    before_step = max(crowded, run.backward_end_bytes) + k.fit_transient * run.transient_bytes
    needed = max(run.optimizer_phase_bytes, before_step * k.fit_reserved_ratio)
    run.needed_gib = needed / GIB + run.process_gib + k.fit_margin_gib


def rate(run: SimpleNamespace) -> None:
    """Set the rates of the card for this run: products, attention, memory and links."""
    g, k = run.g, run.k
    peak = g.bf16_dense_tflops or g.fp16_dense_tflops
    measured = g.gemm_bf16_measured_tflops
    if measured is None and g.bf16_dense_tflops is None:
        measured = g.gemm_fp16_measured_tflops
    expected = peak * min(1.05, gemm_share(g, peak, k) * math.exp(family_offset(run.tables, g)))
    run.gemm_flops = (measured or expected) * 1e12
    is_tuned, over_a100 = run.kernels in ("engine", "mosaic"), run.gemm_flops / 271e12
    run.matmul_flops_per_second = run.gemm_flops * k.gemm_efficiency
    if not is_tuned:
        run.matmul_flops_per_second *= max(1, over_a100) ** k.gemm_exponent
        run.matmul_flops_per_second *= 1 if g.vendor == "nvidia" else k.default_other_vendor
    if g.bf16_dense_tflops is None and run.training_precision != "fp16":
        run.matmul_flops_per_second *= k.emulated_bf16_rate
    progress = k.progress if run.kernels == "engine" else 0
    run.matmul_flops_per_second /= math.exp(progress * run.software_age_years)
    run.matmul_flops_per_second *= (g.tdp_w / peak / 1.1) ** k.sustained_exponent if throttles(g) else 1
    run.attention = "eager" if run.flash_attention == 0 else "flash"
    if run.attention == "flash" and g.architecture in BEFORE_AMPERE:
        run.attention = "efficient"
    kernels = "engine" if run.flash_attention == 2 else run.kernels
    share = k.attention_efficient if run.attention == "efficient" else k.attention_flash
    share *= {"engine": k.attention_engine, "mosaic": k.attention_mosaic}.get(kernels, 1)
    share *= k.attention_ultra if g.architecture == "Blackwell Ultra" else 1
    share *= over_a100 ** (k.attention_exponent * {"engine": 0, "mosaic": 2}.get(kernels, 1))
    if kernels != "engine":
        share *= min(1, 795e12 / run.gemm_flops) ** (1 + k.attention_exponent)
    head = run.query_width / run.m.heads
    run.attention_share = share * 1.25 * head / (head + 32)
    run.attention_flops_per_second = run.matmul_flops_per_second * run.attention_share
    run.attention_length = run.attended_length + k.attention_half_length * run.attention_share
    run.fp32_flops_per_second = (g.fp32_tflops or peak / 16) * 1e12 * k.fp32_efficiency
    run.fp8_speedup = narrow_speedup(run, peak)
    run.host_factor = k.host_before_2020 if g.year < 2020 else 1
    pcie = 4e9 * 2 ** (g.pcie_gen - 1)
    run.host_bytes_per_second = pcie * k.offload_efficiency
    run.pcie_link_bytes_per_second = pcie * (
        k.pcie_link_efficiency if g.peer_to_peer else k.staged_link_efficiency
    )
    run.nvlink_bytes_per_second = run.pcie_link_bytes_per_second
    if g.peer_to_peer and g.nvlink_gb_s:
        run.nvlink_bytes_per_second = g.nvlink_gb_s / 2 * 1e9 * k.link_efficiency
    run.memory_bytes_per_second = g.bandwidth_gb_s * 1e9
    run.cache_bytes = (g.cache_mib or 0) * 2**20
    # To dequantize a weight, a kernel moves it or computes it, whichever takes longer; what it writes of a
    # matrix of the MLP may still be in the cache when the product reads it.
    matrix = 2 * run.hidden * run.intermediate
    written = 2 * (1 - k.cache_gain * min(matrix, run.cache_bytes) / matrix)
    moved = (run.quantized_bytes + written) / (run.memory_bytes_per_second * k.bandwidth_efficiency)
    computed = k.dequantization_operations / ((g.fp32_tflops or peak / 16) * 1e12)
    run.dequantized_weight_seconds = max(moved, computed)


def throttles(gpu: Any) -> bool:
    """True for a card with GDDR whose clocks fall, as it has too few watts for its peak rate."""
    peak, watts = gpu.bf16_dense_tflops, gpu.tdp_w
    return bool(peak and watts and watts < 1.1 * peak) and str(gpu.memory_type).startswith("GDDR")


def gemm_share(gpu: Any, peak: float, k: SimpleNamespace) -> float:
    """Return the share of the datasheet's peak that a card with these watts is expected to reach."""
    return float(k.gemm_ratio_at_one_watt * (gpu.tdp_w / peak) ** k.gemm_ratio_watt_exponent)


def family_offset(tables: Tables, gpu: Any) -> float:
    """Return by how much a card's measured relatives exceed what is expected, with one card that does not."""
    offsets = []
    for row in tables.gpus.values():
        other = SimpleNamespace(**row)
        alike = str(other.architecture).split()[0] == gpu.architecture.split()[0]
        counts = other.has_full_specs and other.derived_from is None and other.gemm_bf16_measured_tflops
        if alike and other.segment == gpu.segment and counts and other.bf16_dense_tflops and other.tdp_w:
            reached = other.gemm_bf16_measured_tflops / other.bf16_dense_tflops
            offsets.append(math.log(reached / gemm_share(other, other.bf16_dense_tflops, tables.constants)))
    return sum(offsets) / (len(offsets) + 1)


def narrow_speedup(run: SimpleNamespace, peak: float) -> float:
    """Return how much faster products are in fp8 or fp4: at most 95% of that format's peak."""
    fp8, fp4, k = run.g.fp8_dense_tflops, run.g.fp4_dense_tflops, run.k
    if not run.fp8 or fp8 is None:
        return 1.0
    gain = 1 + (fp8 / peak - 1) * (k.fp8_gain if run.kernels == "engine" else k.fp8_gain_compiled)
    limit = fp8
    if run.fp8 == 2 and fp4 is not None:
        # torch.compile gets as small a part of this gain as of that of fp8.
        part = 1 if run.kernels == "engine" else k.fp8_gain_compiled / k.fp8_gain
        gain, limit = gain * (1 + (fp4 / fp8 - 1) * k.fp4_gain * part), fp4
    return float(min(gain, 0.95e12 * limit / run.matmul_flops_per_second))


def counted_work(run: SimpleNamespace) -> dict[str, float] | None:
    """Return the work counted on traces, in a micro-step and per token; None if the code was not traced."""
    m = run.m
    if run.kernels != "eager":
        return None
    if run.is_full:
        recipe = "full-fp32" if run.training_precision == "fp32" else "full"
        if not run.shards_weights and run.training_precision in ("amp", "fp16"):
            recipe = "full-amp"
    else:
        recipe = "qlora" if run.is_quantized else "lora"
        recipe += "-upcast" if run.is_quantized and run.kbit_upcast == 1 and not run.shards_weights else ""
        if run.shards_weights:
            recipe += "-16bit-adapters"
        elif run.autocast == 1 or run.training_precision == "fp16":
            recipe += "-autocast"
        elif run.adapter_bytes < 4 and run.kbit_upcast == 0:
            recipe += "-16bit-adapters"
    mlp_width = run.active_intermediate * (1 if m.gated_mlp else 0.5)
    grouped = run.key_value_width < run.query_width
    unadapted = run.is_full or "down_proj" not in run.lora_targets
    down_weights = m.layers * m.hidden * mlp_width * unadapted
    per_token = {
        "layer_token_hidden": m.layers * m.hidden, "layer_token_query": m.layers * run.query_width,
        "layer_token_key_value": m.layers * run.key_value_width,
        "layer_token_intermediate": m.layers * mlp_width,
        "layer_token_adapted_in": m.layers * run.adapted_in,
        "layer_token_adapted_out": m.layers * run.adapted_out,
        "layer_token_adapter_rank": m.layers * run.adapters * run.lora_rank,
        "layer_token_scores": m.layers * m.heads * run.seq_len,
        "layer_token_grouped_query": m.layers * run.query_width * grouped,
        "layer_token_unadapted_down": m.layers * m.hidden * unadapted, "token_hidden": m.hidden,
        "token_layer_weights": run.linear_active, "token_unadapted_down_weights": down_weights,
        "token_head_weights": m.vocab * m.hidden,
        "token_adapter_weights": run.adapter_params * run.experts_active / m.experts,
        "layer_token_attention": m.layers * run.attended_length * run.query_width,
    }  # fmt: skip
    per_step = {
        "layer_weights": m.params_linear, "unadapted_down_weights": down_weights,
        "head_weights": m.vocab * m.hidden, "tied_head_weights": m.vocab * m.hidden * m.tied_embeddings,
        "adapter_weights": run.adapter_params, "layers": m.layers, "layer_adapters": m.layers * run.adapters,
        "grouped_layers": m.layers * grouped, "unadapted_down_layers": m.layers * unadapted, "once": 1,
    }  # fmt: skip
    step, again = (run.tables.work_of[recipe, run.attention, part] for part in ("step", "recompute"))

    def work(quantity: str, amounts: dict[str, float]) -> float:
        def of(part: dict[str, Row]) -> float:
            each = part.get(quantity)
            return sum(each[name] * size for name, size in amounts.items()) if each else 0

        return of(step) + run.recompute_passes * of(again)

    if not step:
        return None
    return {
        "moved_bytes_per_token": work("moved_bytes", per_token),
        "logit_bytes_per_token": m.vocab * step["moved_bytes"]["token_vocab"],
        "moved_weight_bytes": work("moved_bytes", per_step),
        "dequantized_traffic_bytes": work("dequantized_bytes", per_step),
        "flops_16bit_per_token": work("flops_16bit", per_token),
        "flops_fp32_per_token": work("flops_fp32", per_token),
        "attention_16bit_per_token": work("attention_flops_16bit", per_token),
        "attention_fp32_per_token": work("attention_flops_fp32", per_token),
        "kernel_launches": work("kernels", per_step),
        "python_operations": work("python_operations", per_step),
        "autograd_operations": work("autograd_operations", per_step),
    }


def captured(run: SimpleNamespace) -> str:
    """Return what CUDA graphs capture if a run does not say: all of a mixture's step on Blackwell, in fp8."""
    is_new = run.software_date is None or run.software_date >= date(2026, 5, 1)
    is_mixture = run.m.experts > 1 and not run.is_hybrid
    is_blackwell = str(run.g.architecture).startswith("Blackwell") and run.g.segment == "datacenter"
    trains_all = run.kernels == "engine" and run.is_full
    return "step" if trains_all and run.fp8 >= 1 and is_new and is_mixture and is_blackwell else "none"


def time_tokens(run: SimpleNamespace) -> None:
    """Set the seconds per token: products (arXiv 2001.08361), attention (2307.08691), traffic and logits."""
    m, k, memory = run.m, run.k, run.memory_bytes_per_second
    selective = k.recompute_engine if run.kernels == "engine" else k.recompute_selective
    run.recompute_passes = {"full": 1, "sac": selective, "none": 0}[run.checkpointing]
    run.product_passes = 3 if run.is_full else 2
    run.expert_flop_share = min(1, run.expert_params * run.experts_active / m.experts / run.linear_active)
    work = counted_work(run)
    run.is_counted, run.work = work is not None, work or defaultdict(float)
    run.__dict__.update(work or {})
    again, products = run.recompute_passes, run.matmul_flops_per_second
    effective = memory * k.bandwidth_efficiency
    is_engine = run.kernels == "engine"
    run.expert_overhead = math.exp(k.progress_experts * run.software_age_years) if is_engine else 1
    run.cuda_graph = getattr(run, "cuda_graph", captured(run))
    # In fp32, a bias of an expert is scaled, added to the output, and the sum copied and cast.
    biased = run.adds_expert_biases * m.layers * run.experts_active * m.hidden
    run.expert_bias_seconds_per_token = biased * (4 + 6 + 4 + 8 + 6) * (2 + again) / memory
    run.expert_width_share = k.expert_half_width * run.expert_overhead / m.intermediate
    is_fused = run.cuda_graph == "step" and run.fp8 >= 1 and run.g.architecture.startswith("Blackwell")
    run.expert_width_share *= 0.5 if is_fused else 1
    sorting = run.expert_flop_share * run.expert_width_share
    run.matmul_seconds_per_token = (
        run.folds_adapters * 2 * run.linear_active * run.expert_flop_share / products
    )
    if work:
        run.matmul_seconds_per_token += work["flops_16bit_per_token"] * (1 + sorting) / products
        run.matmul_seconds_per_token += work["flops_fp32_per_token"] / run.fp32_flops_per_second
        run.logits_seconds_per_token = work["logit_bytes_per_token"] / effective
        halved = work["attention_16bit_per_token"] / 2 * run.attention_length / run.attended_length
        in_fp32 = work["attention_fp32_per_token"] / 2 / (run.fp32_flops_per_second * k.attention_fp32)
        run.attention_seconds_per_token = halved / run.attention_flops_per_second + in_fp32
        # A token's input of an expert is copied and scaled, and its output added: 2 + 2 + 3 tensors.
        moved = m.layers * m.hidden * run.experts_active * 2 * 7 * (3 + again) if run.expert_params else 0
        run.elementwise_seconds_per_token = (work["moved_bytes_per_token"] + moved) / effective
        return
    weights = 2 * run.linear_active * (run.product_passes + again) * (1 / run.fp8_speedup + sorting)
    adapters = 2 * run.adapter_params / m.experts * (3 + again)
    run.matmul_seconds_per_token += (weights + adapters) / products
    head = 2 * m.vocab * m.hidden * run.product_passes / products
    logits = m.vocab * k.traffic_logits * (k.traffic_logits_fixed + run.logit_bytes)
    run.logits_seconds_per_token = head + logits / memory
    if run.flash_attention == 0:
        pairs = run.seq_len * m.layers * (3 + again)
        run.attention_seconds_per_token = 4 * run.query_width * pairs / products
        run.attention_seconds_per_token += m.heads * pairs * k.traffic_quadratic_attention / memory
    else:
        # Two products forward and five backward, of which the causal mask leaves half.
        flops = (2 + 5 + 2 * again) * 2 * run.attention_length / 2 * run.query_width * m.layers
        run.attention_seconds_per_token = flops / run.attention_flops_per_second
    moved = run.layer_bytes_per_token * k.traffic_fused * (1 + run.fp32_residual * k.traffic_fp32_residual)
    if run.kernels != "engine":
        moved += k.adapter_traffic * 2 * (run.adapted_in + run.adapted_out)
    run.elementwise_seconds_per_token = m.layers * moved * (3 + again) / memory


def time_micro_step(run: SimpleNamespace) -> None:
    """Set the seconds per micro-step that do not grow with its tokens, and the bytes that are sent."""
    m, k, again, memory = run.m, run.k, run.recompute_passes, run.memory_bytes_per_second
    passes, work = run.product_passes + again, run.work
    apart = run.expert_params / run.expert_parallel
    run.weight_read_seconds = 2 * run.expert_params * passes / run.matmul_flops_per_second
    run.weight_read_seconds *= k.expert_half_tokens / run.expert_parallel
    held = m.params_linear - run.expert_params + apart
    run.weight_read_seconds += 2 * held * passes * k.weight_reads / memory
    moved = work["moved_weight_bytes"] + run.folded_bytes * (5 + 2 * again)
    if run.slices_experts and run.is_full:
        # Each expert's gradient is written as one of all experts, and added: one write, two reads, one write.
        moved += m.experts * 4 * run.expert_params * run.full_weight_bytes
    run.fixed_traffic_seconds = moved / (memory * k.bandwidth_efficiency)
    run.fixed_traffic_seconds += work["kernel_launches"] * k.kernel_seconds
    run.dequantization_seconds = 0.0
    if run.is_quantized:
        dequantized = m.params_linear * (1 - run.unquantized_share) * (2 + again)
        if run.quantization == "gptq":
            dequantized *= k.dequantization_gptq
        elif run.is_counted:  # on traces of NF4
            dequantized = work["dequantized_traffic_bytes"] / (BYTES_OF_A_WEIGHT["nf4"] + 2)
        run.dequantization_seconds = dequantized * run.dequantized_weight_seconds
    run.hook_seconds = 0.0
    if run.sharding == "zero3" and run.is_trainer:
        run.hook_seconds = m.layers * k.zero3_hook_seconds
    elif run.sharding == "fsdp" and run.gpu_count > 1:
        run.hook_seconds = m.layers * k.fsdp_hook_seconds * run.host_factor
    launched = {"none": 1, "parts": k.host_graphed, "step": 0}[run.cuda_graph]
    run.host_floor_seconds = run.host_factor * host_work(run) * launched
    run.host_floor_seconds += m.layers * loops(run) if run.cuda_graph != "step" else 0
    moved = 28.0  # AdamW reads or writes seven numbers of 4 bytes
    if run.is_full and not run.has_masters:
        moments = 4 if "8bit" in run.optimizer else 4 * run.full_weight_bytes
        moved = 3 * run.full_weight_bytes + moments
    moved *= m.params_total if run.is_full else run.adapter_params
    if run.steps_foreach and run.training_precision != "deepspeed_bf16" and "cpu" not in run.offload:
        moved *= (13 + 8) / (4 + 3)  # tensors read and written, one operation at a time and fused
    run.optimizer_seconds_unsharded = moved * k.optimizer_traffic / memory
    run.gathered_bytes = m.params_linear * run.linear_width + run.params_unquantized * 2
    run.gather_passes = 2 + (again if run.sharding == "zero3" else 0)
    exchanged = 4 * 2 * m.layers * m.hidden * run.experts_active * k.expert_exchange
    run.exchanged_bytes_per_token = exchanged if run.expert_params else 0
    keys_and_values = 2 * m.layers * run.key_value_width * 2
    run.context_bytes_per_token = keys_and_values * (3 + again) * (run.context_parallel - 1)
    is_ddp = run.sharding == "ddp" and run.kernels != "engine"
    precision = run.training_precision
    in_fp32 = run.has_gradient_buffer or precision == "fp32"
    in_fp32 |= precision == "amp" and run.kernels == "compiled"
    width = run.full_weight_bytes if is_ddp else 4 if in_fp32 else 2
    run.reduced_bytes = m.params_total * width if run.is_full else run.adapter_params * run.adapter_bytes


def host_work(run: SimpleNamespace) -> float:
    """Return the seconds in which the host of a newer card launches a micro-step."""
    k, work = run.k, run.work
    if run.is_counted:
        python = work["python_operations"] * k.python_operation_seconds
        return float(python + work["autograd_operations"] * k.autograd_operation_seconds)
    layer = k.host_seconds_engine if run.kernels == "engine" else k.host_seconds_layer
    if run.stack != "hf" and run.expert_params > 0:
        layer += k.host_seconds_experts * run.expert_overhead
    layer *= 1 if run.is_full else k.host_adapter_factor
    layer *= 1 + k.host_quantized if run.is_quantized else 1
    return float(run.layers * (2 + run.recompute_passes) * layer)


def loops(run: SimpleNamespace) -> float:
    """Return the seconds per layer in which the host visits experts, their biases, or packed sequences."""
    k = run.k

    def operations(forward: int, backward: int) -> float:
        python = forward * (1 + run.recompute_passes) * k.python_operation_seconds
        return float(python + backward * k.autograd_operation_seconds)

    of_an_expert = 0.0
    if run.stack == "hf":
        of_an_expert = operations(6, 18) if run.slices_experts else operations(18, 36)
    elif run.kernels == "engine":
        tensors = (4 if run.adds_expert_biases else 2) if run.is_full else 0
        of_an_expert = tensors * k.expert_tensor_seconds
        of_an_expert += operations(2, 8) if run.adds_expert_biases else 0
    experts = run.m.experts / run.expert_parallel if run.expert_params > 0 else 0
    return experts * of_an_expert + run.micro_batch * run.looped_sequences * 2 * operations(20, 19)


def time_links(run: SimpleNamespace) -> None:
    """Set how fast the groups of GPUs exchange bytes, and how many of each micro-step."""
    g, k = run.g, run.k
    run.gpus_per_node = per_node = run.gpu_count / run.node_count
    is_rack_node = g.nvlink_topology == "switched" and g.max_gpus_per_node == 4
    joined = 2 if g.nvlink_topology == "bridge" else 72 if is_rack_node else per_node
    whole_nodes = is_rack_node and per_node >= 4
    run.linked_gpus = joined if whole_nodes else min(joined, per_node)
    run.local_gpus = max(per_node, run.linked_gpus)
    run.network_bytes_per_second = run.node_network_gbps * 1e9 / 8 * k.network_efficiency
    run.host_share = 1 if g.peer_to_peer else min(1, 2 / per_node)
    pcie, nvlink = (
        speed * run.host_share for speed in (run.pcie_link_bytes_per_second, run.nvlink_bytes_per_second)
    )
    run.link_bytes_per_second = pcie if per_node > run.linked_gpus else nvlink
    in_node = min(run.tensor_parallel, per_node)
    run.tensor_link_bytes_per_second = pcie if in_node > run.linked_gpus else nvlink
    if run.shards_weights:
        sent = run.gather_passes * run.gathered_bytes + run.reduced_bytes
    else:
        gathers = run.shards_optimizer and run.is_full
        sent = run.reduced_bytes + (run.m.params_total * 2 if gathers else run.reduced_bytes)
        sent *= 0 if run.sharding == "none" else 1 / run.grad_accum
    run.collective_bytes = sent / run.model_shards


def reducing_seconds(run: SimpleNamespace) -> float:
    """Return the seconds that tensor parallelism's all-reduces take and show: arXiv 1909.08053.

    There are four of a layer's activations, each in two passes. Engines hide half of them since 2024 where
    NVLink joins the group, but not those of adapters.
    """
    ranks, is_old = run.tensor_parallel, run.software_date and run.software_date < date(2024, 1, 1)
    if ranks == 1:
        return 0.0
    reduced = 4 * 2 * run.layers / run.pipeline_parallel * run.hidden * 2 * run.micro_step_tokens
    inside = (1 - 1 / ranks) / run.tensor_link_bytes_per_second
    across = max(0, 1 - run.local_gpus / ranks) / run.network_bytes_per_second
    is_linked = run.g.peer_to_peer and run.g.nvlink_gb_s is not None and ranks <= run.linked_gpus
    is_hidden = run.kernels == "engine" and run.is_full and not is_old and is_linked
    return float(reduced * max(inside, across) * (0.5 if is_hidden else 1))


def exchanging_seconds(run: SimpleNamespace) -> float:
    """Return the seconds in which tokens travel to their experts and back.

    All but those of experts on their own rank pass a link in the node. A token also passes the network to
    each other node that has an expert of its own, each expert being on any of the nodes alike; the GPUs of a
    node share its network.
    """
    nodes = run.expert_nodes = max(1, run.expert_parallel * run.tensor_parallel / run.local_gpus)
    reached = (nodes - 1) * (1 - (1 - 1 / nodes) ** run.experts_active)
    crossings = reached / run.experts_active
    a_byte = (1 - 1 / run.expert_parallel) / run.link_bytes_per_second
    a_byte += crossings * run.gpus_per_node / run.network_bytes_per_second
    return float(run.exchanged_bytes_per_token * run.micro_step_tokens / run.model_parallel * a_byte)


def exposed(work: float, cover: float, spread: float) -> float:
    """Return what shows of work behind a cover; more of it, the more unevenly both are spread."""
    both = spread**2 * work * cover
    over, root = work - cover, math.sqrt((work - cover) ** 2 + both)
    # The product of root + over and root - over is both, so that no small difference is taken.
    return (over + root) / 2 if over > 0 else both / (root - over or 1) / 2


def show(run: SimpleNamespace) -> None:
    """Set what shows of the transfers, which the GPU's own work hides in part, and of the host's work."""
    k = run.k
    run.root_seconds = 0.0
    if run.sharding == "fsdp" and run.data_parallel > 1:
        width = 2 + (run.reduced_bytes / run.m.params_total if run.is_full else 0)
        root = run.params_unquantized * width / run.model_parallel
        run.root_seconds = min(1, root / run.collective_bytes) * run.collective_seconds
    run.overlapped_seconds = run.collective_seconds - run.root_seconds + run.copied_seconds
    run.exposed_share = 0.0
    if run.overlapped_seconds:
        cover = k.communication_overlap * run.gpu_seconds
        run.exposed_share = exposed(run.overlapped_seconds, cover, k.exposure_spread) / run.overlapped_seconds
    run.offload_seconds = run.exposed_share * run.copied_seconds
    later = run.exposed_share * (run.collective_seconds - run.root_seconds)
    run.communication_seconds = run.root_seconds + later
    run.communication_seconds += run.tensor_parallel_seconds + run.context_parallel_seconds
    behind = k.host_overlap * run.gpu_seconds + run.communication_seconds + run.offload_seconds
    # The host of a mixture waits in each layer for the number of tokens of each expert, and the GPU for it.
    waits = run.expert_params > 0 and run.stack != "hf"
    least = run.host_seconds / 4 if waits else 0
    run.host_exposed_seconds = max(least, exposed(run.host_seconds, behind, k.exposure_spread))


def time_step(run: SimpleNamespace) -> None:
    """Set the terms of a micro-step, what of them shows, and the tokens per second."""
    m, k, tokens = run.m, run.k, run.micro_step_tokens
    stages, ranks, network = run.pipeline_parallel, run.data_parallel, run.network_bytes_per_second
    run.matmul_seconds = run.matmul_seconds_per_token * tokens + run.weight_read_seconds
    run.matmul_seconds /= run.model_parallel
    run.attention_seconds = run.attention_seconds_per_token * tokens / run.model_parallel
    # Two tensors of the MLP that a kernel reads, and one that it writes, if there is an MLP.
    tensors = 3 * 2 * run.active_intermediate * tokens / run.tensor_parallel
    run.cached_share = min(tensors, run.cache_bytes) / tensors if tensors else 1
    elementwise = run.elementwise_seconds_per_token * tokens * (1 - k.cache_gain * run.cached_share)
    biases = run.expert_bias_seconds_per_token * tokens
    run.traffic_seconds = (elementwise + biases + run.fixed_traffic_seconds) / run.model_parallel
    # No stage waits for the head if the head and the embeddings take the places of two layers.
    waits = 1 / stages + (k.head_imbalance if (m.layers + 2) % stages else 0) * (1 - 1 / stages)
    run.logits_seconds = run.logits_seconds_per_token * tokens / run.tensor_parallel * waits
    run.dequantize_seconds = run.dequantization_seconds / run.model_parallel
    run.host_seconds = (run.host_floor_seconds + run.hook_seconds) / stages
    run.host_per_step_seconds = k.host_step_seconds * run.host_factor / run.grad_accum
    run.optimizer_seconds = run.optimizer_seconds_unsharded / run.optimizer_shards
    run.copied_seconds = 0.0
    if "cpu" in run.offload:
        moved = run.optimizer_seconds_unsharded * run.memory_bytes_per_second
        run.optimizer_seconds = moved / (k.host_memory_gb_s * 1e9) / run.node_count
        loaded = (run.gathered_bytes * 2 + run.reduced_bytes) / run.model_parallel
        loaded /= ranks if run.shards_optimizer else 1
        run.copied_seconds = loaded / run.host_bytes_per_second
    run.optimizer_seconds /= run.grad_accum
    if "act" in run.offload:
        moved = 2 * m.layers * m.hidden * 2 * tokens / run.model_parallel
        run.copied_seconds += moved / run.host_bytes_per_second
    run.collective_seconds = 0.0
    if ranks > 1:
        nodes = run.node_count
        inside = run.collective_bytes * (ranks - 1) / ranks / run.link_bytes_per_second
        run.collective_seconds = max(inside, run.collective_bytes * (nodes - 1) / nodes / network)
        if run.shards_weights:
            calls = 3 * m.layers / stages
            run.collective_seconds += calls * k.collective_latency_seconds * math.log2(ranks)
    run.tensor_parallel_seconds = reducing_seconds(run) + exchanging_seconds(run)
    spans = run.context_parallel * run.tensor_parallel > run.local_gpus
    slowest = max(1 / run.link_bytes_per_second, run.gpus_per_node / network if spans else 0)
    sent = run.context_bytes_per_token * tokens / run.model_parallel * slowest
    run.context_parallel_seconds = max(0, sent - k.communication_overlap * run.attention_seconds)
    run.gpu_seconds = run.matmul_seconds + run.attention_seconds + run.traffic_seconds
    run.gpu_seconds += run.logits_seconds + run.dequantize_seconds
    show(run)
    busy = run.gpu_seconds + run.host_exposed_seconds + run.communication_seconds + run.offload_seconds
    # Waits for other GPUs, once a step unless weights are gathered: the delays of its micro-steps even out.
    delays = 1 if run.shards_weights else run.grad_accum
    busy *= 1 + k.waiting_per_doubling * math.log2(run.gpu_count) / math.sqrt(delays)
    idle = 1 / run.virtual_pipeline if run.virtual_pipeline else k.bubble_share
    busy *= 1 + idle * (stages - 1) / run.grad_accum
    run.step_seconds = busy + run.optimizer_seconds + run.host_per_step_seconds
    run.tokens_per_second_per_gpu = tokens / run.step_seconds / run.model_parallel
    terms = {
        "matrix products": run.matmul_seconds, "attention": run.attention_seconds,
        "memory traffic": run.traffic_seconds, "logits": run.logits_seconds,
        "dequantization": run.dequantize_seconds, "host": run.host_exposed_seconds,
        "communication": run.communication_seconds, "offload": run.offload_seconds,
        "optimizer": run.optimizer_seconds,
    }  # fmt: skip
    run.bottleneck = max(terms, key=terms.__getitem__)


def shown_memory(terms: Row) -> Row:
    """Return the columns of memory_of and of plans that are terms of memory."""
    states = {
        "weights": "weight", "gradients": "gradient", "optimizer": "optimizer", "optimizer_copy": "step_copy",
    }  # fmt: skip
    of_states = {
        f"{name}_gib": terms["on_gpu"] * terms[f"{of}_bytes_per_gpu"] / GIB for name, of in states.items()
    }
    return of_states | {
        "adapter_gib": terms["adapter_bytes_per_gpu"] / GIB, "activations_gib": terms["stored_bytes"] / GIB,
        "working_set_gib": terms["working_bytes"] / GIB, "logits_gib": terms["logits_bytes"] / GIB,
        "fsdp_units_gib": (terms["root_bytes"] + terms["units_bytes"]) / GIB,
        "fragmentation_gib": terms["reserved_gib"] - terms["allocated_gib"],
        "overhead_gib": terms["process_gib"], "memory_gib": terms["memory_gib"],
        "needed_gib": terms["needed_gib"], "peak_phase": terms["peak_phase"],
    }  # fmt: skip


def shown_speed(terms: Row) -> Row:
    """Return the columns of speed_of and of plans that are terms of speed."""
    same = ("matmul", "attention", "traffic", "logits", "communication", "offload", "optimizer")
    return {f"{name}_seconds": terms[f"{name}_seconds"] for name in same} | {
        "dequantization_seconds": terms["dequantize_seconds"], "bottleneck": terms["bottleneck"],
        "host_seconds": terms["host_exposed_seconds"], "overhead_seconds": terms["host_per_step_seconds"],
    }  # fmt: skip
