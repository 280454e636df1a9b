"""Exoscale: prices of instance types, joined with the list of types, which gives their GPUs and zones."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pipeline.sources import kit


@kit.joint_reader()
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """One listing per GPU instance type and zone; a type or price without a counterpart becomes a reject.

    Raises SourceChangedError if either list is missing, or if no type has GPUs.
    """
    pages = [audit.envelope(answer, "instance-types") for answer in answers]
    (prices, of_prices), types = _prices(pages, audit.config), _types(pages, audit.config)
    read_type = partial(_read_type, prices=prices)
    with_gpus = [kind for kind in types if kind.peek("gpus")]
    if not with_gpus:
        raise kit.SourceChangedError(f"{audit.config.name}: no type with GPUs")
    yield from kit.read_rows(with_gpus, read_type, "family", "size")
    yield from _without_type(prices, {_price_name(kind) for kind in types}, of_prices, audit.config)


def _prices(
    pages: Sequence[kit.JsonObject], config: kit.SourceConfig
) -> tuple[Mapping[str, Any], kit.Answer]:
    """Return the prices in the wanted currency, and the answer that contains them."""
    currency = config.currency.lower()
    for page in pages:
        if currency in page and isinstance(page.get(currency), dict):
            return page.get(currency), page.answer
    raise kit.SourceChangedError(f"{config.name}: no answer has prices in {currency}")


def _types(pages: Sequence[kit.JsonObject], config: kit.SourceConfig) -> list[kit.JsonObject]:
    lists = [page for page in pages if "instance-types" in page.raw]
    if not lists:
        raise kit.SourceChangedError(f"{config.name}: no list of instance types")
    return [kind for page in lists for kind in page.items("instance-types")]


def _price_name(kind: kit.JsonObject) -> str:
    """Return a type's name in the price list, such as ``running_gpu3_small``."""
    return f"running_{kind.peek('family')}_{kind.peek('size')}".replace("-", "_")


def _read_type(kind: kit.JsonObject, prices: Mapping[str, Any]) -> kit.Listings:
    name = _price_name(kind)
    if name not in prices:
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, f"{name} is not in the price list")
    listed = kind.get("zones")
    zones = [zone for zone in listed if isinstance(zone, str)] if isinstance(listed, list) else []
    if not zones:
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, "it is in no zone")
    instance_type = f"{kind.text('family')}.{kind.text('size')}"
    memory_gib = kind.optional_number("memory", per=kit.BYTES_PER_GIB)
    for zone in dict.fromkeys(zones):
        yield kind.listing(
            instance_type,
            kind.gpu_count("gpus"),
            kit.price_of(prices[name]),
            label_kind="instance_type",
            instance_type=instance_type,
            region=zone,
            vcpus=kind.optional_number("cpus"),
            ram_gib=memory_gib or None,
            storage_usd_per_gb_month=kit.usd_per_gb_month(prices.get("volume"), kit.GB_PER_GIB),
        )


def _without_type(
    prices: Mapping[str, Any], known: set[str], answer: kit.Answer, config: kit.SourceConfig
) -> Iterator[kit.Reject]:
    """Yield a reject for each price whose GPU type is not listed."""
    for name, price in prices.items():
        if name.startswith(config.settings["gpu_price"]) and name not in known:
            detail = f"{name}: no such type is in the list of types"
            yield kit.Reject(kit.RejectReason.DISCONTINUED, detail, {name: price}, answer)
