"""RunPod: one GraphQL answer with every GPU type and its price per GPU-hour in each tier, or else, for those
who have a key, the catalogue of REST v2, which has on-demand prices only.

Each price field in the answer becomes an offer or a reject; fields that were not requested are ignored. The
two tiers are ``secure`` (RunPod's own data centres) and ``community`` (independent hosts), each with its
maximum number of GPUs per pod.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pipeline.sources import kit

_PRICE_FIELDS: dict[str, tuple[str, kit.PriceKind, int | None]] = {
    "securePrice": ("secure", "on_demand", None),
    "communityPrice": ("community", "on_demand", None),
    "secureSpotPrice": ("secure", "spot", None),
    "communitySpotPrice": ("community", "spot", None),
    "oneWeekPrice": ("secure", "reserved", 7),
    "oneMonthPrice": ("secure", "reserved", 30),
    "threeMonthPrice": ("secure", "reserved", 90),
    "sixMonthPrice": ("secure", "reserved", 180),
    "clusterPrice": ("secure", "on_demand", None),
}
"""Price fields of a GPU type, with the tier that must offer the GPU, the price kind and the term in days."""

_CLUSTER = "clusterPrice"
_FLAGS = {"secure": "secureCloud", "community": "communityCloud"}
_MOST_GPUS = {"secure": "maxGpuCountSecureCloud", "community": "maxGpuCountCommunityCloud"}
_LOWEST_PRICES = {"secure": "lowestPrice", "community": "community"}
_IN_STOCK = {"low", "medium", "high"}
_UNKNOWN_FIELD = re.compile(r"""Cannot query field ["'](\w{1,60})["']""")


def next_requests(answer: kit.Answer, config: kit.SourceConfig) -> list[kit.Request]:
    """Return a query that the API may accept after refusing another: the same query without the fields that
    the API does not know, or else the next shorter of the queries in the yaml."""
    try:
        body = answer.json()
    except kit.SourceChangedError:
        return []
    if not isinstance(body, dict) or "errors" not in body or answer.url == config.requests[-1].url:
        return []
    data = body.get("data")
    if isinstance(data, dict) and data.get("gpuTypes"):
        return []
    *_, shortest = queries = config.settings["shorter_queries"]
    refused = _query(answer)
    below = len(refused) or len(shortest) + 1
    unknown = set(_UNKNOWN_FIELD.findall(str(body["errors"]))) - set(re.findall(r"\w+", shortest))
    query = next((each for each in (_without(refused, unknown), *queries) if 0 < len(each) < below), None)
    if query is None:
        return []
    sent = json.dumps({"query": query}, separators=(",", ":")).encode()
    return [kit.Request(config.requests[0].url, "POST", {"content-type": "application/json"}, sent)]


retry_requests = next_requests
"""When the API refuses a query, it answers with status 400 or 200."""


def _query(answer: kit.Answer) -> str:
    """Return the query that was answered, or "" if it is unknown."""
    try:
        return str(kit.read_json((answer.request_body or b"{}").decode(), answer.url).get("query", ""))
    except (ValueError, AttributeError):
        return ""


def _without(query: str, fields: Iterable[str]) -> str:
    """Return a query without some fields and their aliases, arguments and selections; arguments with the same
    names as the fields stay."""
    for field in sorted(fields):
        query = re.sub(rf" (?:\w+: )?{field}\b(?!:)(?:\([^()]*\))?(?: \{{[^{{}}]*\}})?", "", query)
    return query


@kit.joint_reader()
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """Every price of every GPU type. Raises SourceChangedError for an answer without GPU types."""
    refusals, by_query, by_rest = [], list[Sequence[kit.JsonObject]](), list[Sequence[kit.JsonObject]]()
    for answer in answers:
        body = audit.envelope(answer, "gpuTypes")
        data = body.object("data") if "data" in body else body
        if "gpus" in body:
            by_rest.append([audit.item(_as_queried(gpu), answer) for gpu in body.objects("gpus")])
        elif "errors" in body and data.get("gpuTypes") is None:
            refusals.append(str(body.get("errors"))[:300])
        else:
            by_query.append(data.items("gpuTypes"))
    for gpus in by_query or by_rest:
        yield from _read_gpus(gpus)
    if not by_query and not by_rest:
        raise kit.SourceChangedError(f"RunPod answered no GPU types: {'; '.join(refusals) or 'no answer'}")


def _as_queried(gpu: kit.JsonObject) -> dict[str, Any]:
    """Return a GPU type of REST v2 as GraphQL answers it. A tier is offered only if its flag says so, since
    there are prices without. The stock is that of both tiers, so it counts only if one tier is offered."""
    offered = {tier: gpu.get(tier) is True for tier in _FLAGS}
    prices, most, stock = gpu.object("price"), gpu.object("maxCount"), gpu.get("availability")
    queried = {"id": gpu.get("id"), "memoryInGb": gpu.get("memory")}
    for tier, flag in _FLAGS.items():
        queried |= {flag: offered[tier], f"{tier}Price": prices.get(tier), _MOST_GPUS[tier]: most.get(tier)}
        if [name for name in offered if offered[name]] == [tier]:
            queried[_LOWEST_PRICES[tier]] = {"stockStatus": stock}
    return queried


def _read_gpus(gpus: Sequence[kit.JsonObject]) -> kit.Rows:
    if not any(name in gpu.raw for gpu in gpus for name in _PRICE_FIELDS if gpu.peek("id")):
        raise kit.SourceChangedError("no GPU type of RunPod has an id and any of the price fields")
    memory = {str(gpu.peek("id")): gpu.peek("memoryInGb") for gpu in gpus}
    yield from kit.read_rows(gpus, lambda gpu: _read_gpu(gpu, memory), "id")


def _read_gpu(gpu: kit.JsonObject, memory: Mapping[str, object]) -> kit.Rows:
    gpu_id = gpu.text("id")
    if gpu_id == "unknown":
        raise kit.RowError(kit.RejectReason.NOT_A_GPU, "RunPod's own row for no GPU")
    if not any(name in gpu for name in _PRICE_FIELDS):
        raise kit.RowError(kit.RejectReason.MISSING_FIELD, "none of the known price fields")
    for name in _PRICE_FIELDS:
        if name not in gpu:
            continue
        try:
            yield _listing(gpu, name, memory)
        except kit.RowError as error:
            shown = ("id", name, *_FLAGS.values())
            yield gpu.reject(error, gpu_id, {field: gpu.raw.get(field) for field in shown})


def _listing(gpu: kit.JsonObject, name: str, memory: Mapping[str, object]) -> kit.Listing:
    tier, kind, term_days = _PRICE_FIELDS[name]
    price = _price(gpu, name, tier)
    is_cluster = name == _CLUSTER
    pods = int(gpu.config.settings["cluster_min_pods"])
    smallest_cluster = pods * gpu.gpu_count("maxGpuCount") if is_cluster else None
    slice_of_card, memory_gb = _slice(gpu, memory), gpu.optional_decimal("memoryInGb")
    stock = (gpu.object(_LOWEST_PRICES[tier]).optional_text("stockStatus") or "").lower()
    is_in_stock = kind == "on_demand" and not is_cluster and stock in _IN_STOCK
    # If RunPod has no such plan, the field repeats the on-demand price, which is nevertheless valid.
    is_repeated = kind == "reserved" and gpu.optional_decimal("securePrice") == price
    return gpu.listing(
        gpu.text("id"),
        float(smallest_cluster or slice_of_card),
        price,
        gpu_counts=_pod_sizes(gpu, tier) if not is_cluster and slice_of_card == 1 else None,
        price_kind=kind,
        native_unit="gpu_hour" if slice_of_card == 1 else "instance_hour",
        context={"vram_gb": memory_gb / slice_of_card} if memory_gb else {},
        term_days=term_days,
        tier="cluster" if is_cluster else tier,
        min_gpu_count=smallest_cluster,
        available=True if is_in_stock else None,
        flag_reason=kit.FlagReason.RESERVED_AT_ON_DEMAND_PRICE if is_repeated else None,
    )


def _price(gpu: kit.JsonObject, name: str, tier: str) -> Decimal:
    """Return the price if the tier offers the GPU. A placeholder is refused unless the tier's flag is set."""
    is_offered = gpu.get(_FLAGS[tier])
    if is_offered is False:
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, f"not offered in the {tier} cloud ({name})")
    if gpu.get(name) in (0, "0"):
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, f"{name} is 0")
    price = gpu.price(name)
    if is_offered is not True and price == Decimal(gpu.config.settings["placeholder_price"]):
        detail = f"{name} is exactly {price}, which RunPod also shows for tiers not offered"
        raise kit.RowError(kit.RejectReason.PLACEHOLDER_SUSPECTED, detail)
    return price


def _pod_sizes(gpu: kit.JsonObject, tier: str) -> tuple[int, ...] | None:
    """Return the possible numbers of GPUs per pod in a tier; None if the answer does not say.

    ``maxGpuCount`` is the larger maximum of the two tiers, so it counts only if no other tier offers the GPU.
    """
    only_here = all(gpu.get(flag) is False for other, flag in _FLAGS.items() if other != tier)
    fields = [_MOST_GPUS[tier], "maxGpuCount"] if only_here else [_MOST_GPUS[tier]]
    field = next((name for name in fields if gpu.get(name)), None)
    if field is None:
        return None
    least = gpu.gpu_count("minPodGpuCount") if gpu.get("minPodGpuCount") else 1
    return tuple(range(least, gpu.gpu_count(field) + 1)) or None


def _slice(gpu: kit.JsonObject, memory: Mapping[str, object]) -> Decimal:
    """Return 1, or, for a slice such as "MIG 1g.24gb", its share of the card's memory in the same answer."""
    card, mig, _ = gpu.text("id").partition(" MIG ")
    if not mig and not re.search(r"\bMIG\b", card):
        return Decimal(1)
    try:
        share = kit.number(gpu.get("memoryInGb")) / kit.number(memory.get(card))
    except (kit.UnreadableError, ArithmeticError) as error:
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_SHARE, f"the share of a {card}: {error}") from error
    if not 0 < share < 1:
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_SHARE, f"{share} of a {card} is not a slice")
    return share
