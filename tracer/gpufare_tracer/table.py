"""One row of catalog/traces.csv per trace: the memory of each phase by category, and the work of a step."""

from collections import Counter

from gpufare_tracer.result import Attention, Trace, Work
from gpufare_tracer.timeline import Category, Moment, Phase

PHASES = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)

KEYS = ("recipe", "model", "layers", "micro_batch", "seq_len", "compute_capability")
"""Columns that name a trace."""

WORK_KINDS = (
    "elementwise", "cast", "copy", "norm", "softmax", "reduction", "optimizer", "embedding", "dequantization",
    "index", "triton",
)  # fmt: skip
"""Kinds of kernels whose bytes are counted."""
ATTENTION_KERNELS = ("flash", "efficient")
"""Fused attention kernels; eager attention is matrix products and softmax."""
PRECISIONS = ("16bit", "fp32", "8bit")
NARROW = 128
"""A matrix product with a side of at most this many moves many bytes for its FLOPs, as adapters' do."""


def columns() -> tuple[str, ...]:
    """Columns of the table, in order; bytes unless the name says otherwise."""
    memory = tuple(
        f"{phase}_{name}"
        for phase in PHASES
        for name in ("allocated_bytes", "reserved_bytes", *(f"{category}_bytes" for category in Category))
    )
    moments = tuple(
        f"{moment}_{name}"
        for moment in Moment
        for name in ("allocated_bytes", "operation", *(f"{category}_bytes" for category in Category))
    )
    return (*KEYS, "resident_bytes", "trainable_parameters", *memory, *moments, *work_columns())


def row(trace: Trace, layers: int) -> dict[str, str | int]:
    """A trace as a row; ``layers`` is the depth that was traced. Phases never entered count 0."""
    major, minor = trace.shape.compute_capability
    values: dict[str, str | int] = {name: "" if name.endswith("_operation") else 0 for name in columns()}
    values |= {
        "recipe": trace.recipe.name, "model": trace.shape.model, "layers": layers,
        "micro_batch": trace.shape.micro_batch, "seq_len": trace.shape.seq_len,
        "compute_capability": f"{major}.{minor}", "resident_bytes": trace.resident_bytes,
        "trainable_parameters": trace.trainable_parameters,
    }  # fmt: skip
    for phase in trace.phases:
        values[f"{phase.phase}_allocated_bytes"] = phase.allocated_bytes
        values[f"{phase.phase}_reserved_bytes"] = phase.reserved_bytes
        for category, size in phase.by_category.items():
            values[f"{phase.phase}_{category}_bytes"] = size
    for moment in trace.moments:
        values[f"{moment.moment}_allocated_bytes"] = moment.allocated_bytes
        values[f"{moment.moment}_operation"] = moment.operation
        for category, size in moment.by_category.items():
            values[f"{moment.moment}_{category}_bytes"] = size
    return values | work_values(trace.work)


def work_columns() -> tuple[str, ...]:
    """Columns of the work of a step, in order: FLOPs, bytes, and numbers of kernels and operations.

    A multiplication with its addition counts as two FLOPs, and causal attention in full. ``narrow_bytes`` are
    those of products with a side of at most ``NARROW``, ``wide_bytes`` those of all others, each matrix once.
    """
    per_phase = tuple(
        f"{phase}_{name}"
        for phase in PHASES
        for name in (
            *(f"flops_{precision}" for precision in PRECISIONS), "narrow_bytes", "wide_bytes",
            *(f"flops_attention_{kernel}" for kernel in ATTENTION_KERNELS),
            *(f"moved_{kind}_bytes" for kind in WORK_KINDS),
            "kernels", "python_operations", "autograd_operations", "communicated_bytes",
        )
    )  # fmt: skip
    return (*per_phase, "synchronizations")


def work_values(work: Work) -> dict[str, int]:
    """The work of a step by ``work_columns``.

    Raises ``ValueError`` naming a kind, type or kernel that the table has no column for.
    """
    values: Counter[str] = Counter()
    _add_products(values, work)
    for call in work.attention:
        passes = (
            2.5 if call.is_backward else 1.0
        )  # five products for the forward pass's two: arXiv 2307.08691
        products = 4 * call.batch * call.heads * call.query_length * call.key_length * call.head_width
        values[f"{call.phase}_flops_attention_{call.kernel}"] += int(passes * products) * call.count
    for key, size in work.bytes_by_kind.items():
        values["{}_moved_{}_bytes".format(*key.split("|"))] += size
    for key, count in work.kernels.items():
        values[f"{key}_kernels"] += count
    for key, count in work.host_operations.items():
        values["{}_{}_operations".format(*key.split("|"))] += count
    for key, size in work.communicated_bytes.items():
        values[f"{key.split('|')[0]}_communicated_bytes"] += size
    values["synchronizations"] += work.synchronizations
    names = work_columns()
    if unknown := sorted(set(values) - set(names)):
        raise ValueError(f"the table of traces has no column {', '.join(unknown)}")
    return {name: values[name] for name in names}


def attention_flops(call: Attention) -> int:
    """FLOPs of the calls of one shape, as if nothing were masked."""
    products = 5 if call.is_backward else 2  # Dao 2023, arXiv 2307.08691
    size = call.batch * call.heads * call.query_length * call.key_length * call.head_width
    return 2 * products * size * call.count


def _add_products(values: Counter[str], work: Work) -> None:
    for product in work.matrix_products:
        phase, size = product.phase, _element_bytes(product.dtype)
        flops = 2 * product.batch * product.m * product.n * product.k * product.count
        elements = product.m * product.k + product.k * product.n + product.m * product.n
        moved = product.batch * elements * size * product.count
        values[f"{phase}_flops_{_precision(product.dtype)}"] += flops
        is_narrow = min(product.m, product.n, product.k) <= NARROW
        values[f"{phase}_{'narrow' if is_narrow else 'wide'}_bytes"] += moved


def _element_bytes(dtype: str) -> int:
    return {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}.get(dtype, 1)


def _precision(dtype: str) -> str:
    return {8: "fp32", 4: "fp32", 2: "16bit", 1: "8bit"}[_element_bytes(dtype)]
