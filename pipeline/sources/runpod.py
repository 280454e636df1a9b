"""RunPod: one GraphQL answer with every GPU type and its price per GPU-hour in each tier.

A price field that is in the answer becomes an offer or a reject; a field that was not asked for is nothing.
Two tiers are told apart: ``secure`` (RunPod's own data centres) and ``community`` (hosts).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, Request, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.prices import RowError, price_of
from pipeline.parsing.text import UnreadableError, number, whole_number


@dataclass(frozen=True, slots=True)
class _PriceField:
    """A price field of a GPU type: which tier must offer the GPU for it to count, and what it buys."""

    tier: str
    kind: PriceKind
    term_days: int | None = None
    cluster: bool = False


_PRICE_FIELDS = {
    "securePrice": _PriceField("secure", "on_demand"),
    "communityPrice": _PriceField("community", "on_demand"),
    "secureSpotPrice": _PriceField("secure", "spot"),
    "communitySpotPrice": _PriceField("community", "spot"),
    "oneWeekPrice": _PriceField("secure", "reserved", 7),
    "oneMonthPrice": _PriceField("secure", "reserved", 30),
    "threeMonthPrice": _PriceField("secure", "reserved", 90),
    "sixMonthPrice": _PriceField("secure", "reserved", 180),
    "clusterPrice": _PriceField("secure", "on_demand", cluster=True),
}
_FLAGS = {"secure": "secureCloud", "community": "communityCloud"}
_IN_STOCK = {"low", "medium", "high"}


def next_requests(answer: Answer, config: SourceConfig) -> list[Request]:
    """Ask again with fewer fields when the API refused a field of the full query."""
    try:
        refused = "errors" in _object(answer)
    except SourceChangedError:
        refused = False
    if not refused:
        return []
    body = json.dumps({"query": config.settings["minimal_query"]}, separators=(",", ":")).encode()
    headers = {"content-type": "application/json"}
    return [Request(config.requests[0].url, method="POST", headers=headers, body=body)]


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """Every price of every GPU type. Raises SourceChangedError for an answer without GPU types."""
    refusals = []
    for answer in answers:
        gpus = _gpu_types(answer)
        if gpus is None:
            refusals.append(answer)
            continue
        memory = {gpu["id"]: gpu.get("memoryInGb") for gpu in gpus if _has_id(gpu)}
        for gpu in gpus:
            if _has_id(gpu):
                yield from _read_gpu(gpu, memory, answer, config)
            else:
                yield Reject(RejectReason.MISSING_FIELD, "a GPU type without id", gpu, answer)
    if len(refusals) == len(answers):
        told = "; ".join(str(_object(answer).get("errors"))[:300] for answer in refusals)
        raise SourceChangedError(f"RunPod answered no GPU types: {told or 'no answer'}")


def _object(answer: Answer) -> dict[str, Any]:
    body = answer.json()
    return body if isinstance(body, dict) else {"gpuTypes": body}


def _gpu_types(answer: Answer) -> list[dict[str, Any]] | None:
    """The GPU types of an answer, in their envelope or bare; None where the API refused the query."""
    body = _object(answer)
    held = body.get("data") if "data" in body else body
    gpus = held.get("gpuTypes") if isinstance(held, dict) else None
    if gpus is None and "errors" in body:
        return None
    if not isinstance(gpus, list) or not any(map(_has_id, gpus)):
        raise SourceChangedError(f"{answer.url}: data.gpuTypes is not a list of GPU types with ids")
    if not any(name in gpu for gpu in gpus if _has_id(gpu) for name in _PRICE_FIELDS):
        raise SourceChangedError(f"{answer.url}: no GPU type has any of the price fields")
    return gpus


def _has_id(gpu: Any) -> bool:
    return isinstance(gpu, dict) and isinstance(gpu.get("id"), str) and bool(gpu["id"])


def _read_gpu(
    gpu: dict[str, Any], memory: dict[str, Any], answer: Answer, config: SourceConfig
) -> Iterator[Listing | Reject]:
    if gpu["id"] == "unknown":
        yield Reject(RejectReason.NOT_A_GPU, "RunPod's own row for no GPU", gpu, answer)
        return
    for name, price_field in _PRICE_FIELDS.items():
        if name not in gpu:
            continue
        try:
            yield _listing(gpu, name, price_field, memory, answer, config)
        except RowError as problem:
            raw = {"id": gpu["id"], name: gpu[name], **{flag: gpu.get(flag) for flag in _FLAGS.values()}}
            yield Reject(problem.reason, f"{gpu['id']}: {problem}", raw, answer)


def _listing(
    gpu: dict[str, Any],
    name: str,
    price_field: _PriceField,
    memory: dict[str, Any],
    answer: Answer,
    config: SourceConfig,
) -> Listing:
    price = _price(gpu, name, price_field, config)
    smallest_cluster = _smallest_cluster(gpu, config) if price_field.cluster else None
    slice_of_card = _slice(gpu, memory)
    secure_on_demand = name == "securePrice"
    return Listing(
        raw_label=gpu["id"],
        gpu_count=float(smallest_cluster or slice_of_card),
        price_kind=price_field.kind,
        native_price=price,
        native_currency=config.currency,
        native_unit="gpu_hour" if slice_of_card == 1 else "instance_hour",
        answer=answer,
        context={"vram_gb": _memory_gb(gpu) / slice_of_card} if _memory_gb(gpu) else {},
        term_days=price_field.term_days,
        tier="cluster" if price_field.cluster else price_field.tier,
        min_gpu_count=smallest_cluster,
        available=_in_stock(gpu) if secure_on_demand else None,
    )


def _price(gpu: dict[str, Any], name: str, price_field: _PriceField, config: SourceConfig) -> Decimal:
    """The price, if the GPU is offered in that tier. Without the tier's flag the placeholder is refused."""
    offered = gpu.get(_FLAGS[price_field.tier])
    if offered is False:
        raise RowError(RejectReason.NOT_OFFERED, f"not offered in the {price_field.tier} cloud ({name})")
    if gpu[name] in (0, "0"):
        raise RowError(RejectReason.NOT_OFFERED, f"{name} is 0")
    price = price_of(gpu[name])
    if offered is not True and price == Decimal(config.settings["placeholder_price"]):
        raise RowError(
            RejectReason.PLACEHOLDER_SUSPECTED,
            f"{name} is exactly {price}, which RunPod also shows for tiers not offered",
        )
    return price


def _smallest_cluster(gpu: dict[str, Any], config: SourceConfig) -> int:
    try:
        return whole_number(gpu.get("maxGpuCount")) * int(config.settings["cluster_min_pods"])
    except UnreadableError as error:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, "a cluster price without maxGpuCount") from error


def _slice(gpu: dict[str, Any], memory: dict[str, Any]) -> Decimal:
    """1, or for a slice ("... MIG 1g.24gb") its share of the memory of the whole card in the same answer."""
    card, mig, _ = str(gpu["id"]).partition(" MIG ")
    if not mig:
        return Decimal(1)
    try:
        share = number(gpu.get("memoryInGb")) / number(memory.get(card))
    except (UnreadableError, ArithmeticError) as error:
        raise RowError(
            RejectReason.UNKNOWN_GPU_SHARE, f"nothing says what part of a {card} this is"
        ) from error
    if not 0 < share < 1:
        raise RowError(RejectReason.UNKNOWN_GPU_SHARE, f"{share} of a {card} is not a slice")
    return share


def _memory_gb(gpu: dict[str, Any]) -> Decimal:
    """Of the GPU or slice itself; 0 where the answer does not say it."""
    try:
        return number(gpu.get("memoryInGb"))
    except UnreadableError:
        return Decimal(0)


def _in_stock(gpu: dict[str, Any]) -> bool | None:
    lowest = gpu.get("lowestPrice")
    stock = lowest.get("stockStatus") if isinstance(lowest, dict) else None
    return True if isinstance(stock, str) and stock.lower() in _IN_STOCK else None
