"""Voltage Park: bare-metal nodes per network and ready-made virtual machines."""

from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.json_lists import items_of, object_in
from pipeline.parsing.prices import RowError, is_available, optional_number, price_of
from pipeline.parsing.text import UnreadableError, whole_number

_PRICE_FIELD = "gpu_price_"


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """Locations and presets, told apart by their fields.

    Presets without GPUs are not ours and are passed over. Raises SourceChangedError for objects of another
    kind and when nothing is read.
    """
    rows = (row for answer in answers for row in _read_answer(answer, config))
    return at_least_one(rows, f"{config.name}: neither a location nor a preset with GPUs")


def _read_answer(answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    body = answer.json()
    items = items_of(answer, "results")
    if items and not any("specs_per_node" in item or "compute_rate_hourly" in item for item in items):
        raise SourceChangedError(f"{answer.url}: neither locations nor presets: {sorted(items[0])[:12]}")
    for item in items:
        if "specs_per_node" in item:
            yield from _read_location(item, answer, config)
        elif "compute_rate_hourly" in item:
            yield from _read_preset(item, answer)
        else:
            detail = f"neither a location nor a preset: {sorted(item)[:12]}"
            yield Reject(RejectReason.UNREADABLE_ROW, detail, item, answer)
    if isinstance(body, dict) and body.get("has_next"):
        detail = "the list goes on, on pages whose addresses are not known"
        yield Reject(RejectReason.UNREAD_PAGE, detail, body.get("total_result_count"), answer)


def _read_location(item: dict[str, Any], answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    """One listing per network: prices are per GPU, and a node is rented whole."""
    node = object_in(item, "specs_per_node")
    model = node.get("gpu_model")
    try:
        gpu_count = whole_number(node.get("gpu_count"))
        if not isinstance(model, str) or gpu_count < 1:
            raise UnreadableError(f"{gpu_count} of {model!r}")
    except UnreadableError as error:
        detail = f"location {item.get('id')}: no readable GPU model or count ({error})"
        yield Reject(RejectReason.MISSING_FIELD, detail, item, answer)
        return
    networks = [name.removeprefix(_PRICE_FIELD) for name in item if name.startswith(_PRICE_FIELD)]
    if not networks:
        raise SourceChangedError(f"{answer.url}: location {item.get('id')} has no {_PRICE_FIELD}* field")
    for network in networks:
        if network not in config.settings["networks"]:
            detail = f"location {item.get('id')}: a price for {network!r}, which is not known"
            yield Reject(RejectReason.UNKNOWN_TERMS, detail, item, answer)
            continue
        try:
            price = price_of(item[_PRICE_FIELD + network])
        except RowError as error:
            detail = f"location {item.get('id')}, {network}: {error}"
            yield Reject(error.reason, detail, item, answer)
            continue
        yield Listing(
            raw_label=model,
            gpu_count=gpu_count,
            price_kind="on_demand",
            native_price=price,
            native_currency="USD",
            native_unit="gpu_hour",
            answer=answer,
            min_gpu_count=gpu_count,
            available=is_available(item.get(f"gpu_count_{network}")),
            tier=f"bare_metal_{network}",
            node_network_gbps=config.settings["node_network_gbps"].get(network),
            ram_gib=optional_number(node.get("ram_gb")),
            local_disk_gb=optional_number(node.get("storage_gb")),
        )


def _read_preset(item: dict[str, Any], answer: Answer) -> Iterator[Listing | Reject]:
    """A whole virtual machine: its compute and the disk that comes with it."""
    resources = object_in(item, "resources")
    gpus = object_in(resources, "gpus")
    if not gpus:
        return
    try:
        if len(gpus) != 1:
            raise UnreadableError(f"{len(gpus)} GPU models in one machine")
        (model,) = gpus
        gpu_count = whole_number(object_in(gpus, model).get("count"))
        if gpu_count < 1:
            raise UnreadableError(f"{gpu_count} GPUs")
        price = price_of(item["compute_rate_hourly"])
        storage = item.get("storage_rate_hourly")
        price += 0 if storage is None else price_of(storage)
    except (RowError, UnreadableError) as error:
        reason = error.reason if isinstance(error, RowError) else RejectReason.MISSING_FIELD
        detail = f"preset {item.get('id')}: {error}"
        yield Reject(reason, detail, item, answer)
        return
    yield Listing(
        raw_label=model,
        gpu_count=gpu_count,
        price_kind="on_demand",
        native_price=price,
        native_currency="USD",
        native_unit="instance_hour",
        answer=answer,
        available=_any_place(item.get("location_ids_with_availability")),
        tier="vm",
        vcpus=optional_number(resources.get("vcpu_count")),
        ram_gib=optional_number(resources.get("ram_gb")),
        local_disk_gb=optional_number(resources.get("storage_gb")),
        flag_reason=None if storage is not None else FlagReason.DISK_NOT_PRICED,
    )


def _any_place(locations: Any) -> bool | None:
    return len(locations) > 0 if isinstance(locations, list) else None
