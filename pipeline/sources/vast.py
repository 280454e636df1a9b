"""Vast.ai: asks of a marketplace of hosts, one offer per ask."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import (
    Answer,
    Listing,
    PriceKind,
    Reject,
    Request,
    Row,
    SourceChangedError,
    read_json,
)
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.answers import each_answer
from pipeline.parsing.json_objects import FieldAudit, JsonObject
from pipeline.parsing.prices import RowError, spot_flag

_ADDRESS_FIELD = rb'"public_ipaddr"\s*:\s*(?:"[^"]*"?|null)\s*'
_ADDRESS = re.compile(_ADDRESS_FIELD + rb",\s*")
_ADDRESS_AT_END = re.compile(rb",?\s*" + _ADDRESS_FIELD)


def redact(body: bytes) -> bytes:
    """The answer without the hosts' IP addresses; every other byte stays, in a broken answer too."""
    return _ADDRESS_AT_END.sub(b"", _ADDRESS.sub(b"", body))


def requests(config: SourceConfig, environment: Mapping[str, str]) -> list[Request]:
    """One search per GPU name and rental type."""
    return [
        _search(config, {"gpu_name": {"eq": name}}, rental_type, "asc")
        for name in config.settings["gpu_names"]
        for rental_type in config.settings["rental_types"]
    ]


def next_requests(answer: Answer, config: SourceConfig) -> list[Request]:
    """A full reply hides the rest: ask per GPU count, and a full count from the dearest end as well.

    The address has no offset or cursor, so this is no paging that the yaml could declare.
    """
    query = _query_of(answer)
    if query is None or len(FieldAudit(config).items(answer, "offers")) < config.settings["reply_limit"]:
        return []
    filters: dict[str, Any] = {key: query[key] for key in ("gpu_name", "num_gpus") if key in query}
    if query["order"] != [["dph_total", "asc"]]:
        return []
    if "num_gpus" in filters:
        return [_search(config, filters, query["type"], "desc")]
    counts = config.settings["gpu_counts"]
    shares = [{"eq": count} for count in counts] + [{"notin": counts}]
    return [_search(config, filters | {"num_gpus": share}, query["type"], "asc") for share in shares]


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Row]:
    """Every ask once, though several searches may show it. Asks for CPUs only are skipped.

    Raises SourceChangedError when no search shows any ask.
    """
    audit = FieldAudit(config)
    seen: dict[tuple[Any, PriceKind], Listing | Reject] = {}
    asks = 0
    searches, refused = each_answer(answers, lambda answer: audit.items(answer, "offers"))
    yield from refused
    for answer, found in searches:
        rental_type = (_query_of(answer) or {}).get("type")
        for ask in found:
            asks += 1
            if ask.peek("resource_type") not in (None, "gpu"):
                continue
            kind, ask_id = _kind(ask, rental_type), ask.get("id")
            key = (str(ask_id) if isinstance(ask_id, int | str) and ask_id else f"unnamed {asks}", kind)
            if key in seen:
                error = RowError(RejectReason.DUPLICATE, "shown by an earlier search")
                yield ask.reject(error, f"ask {key[0]}")
            else:
                seen[key] = _read_ask(ask, kind, config)
    if not asks:
        raise SourceChangedError(f"{config.name}: no search shows any ask")
    for (ask_id, _), row in seen.items():
        yield _flagged(row, seen.get((ask_id, "on_demand")))
    yield from audit.warnings()


def _flagged(row: Listing | Reject, on_demand: Listing | Reject | None) -> Listing | Reject:
    """A bid that is not below the same ask's fixed price is doubtful: nobody would bid."""
    if not isinstance(row, Listing) or not isinstance(on_demand, Listing) or row.price_kind != "spot":
        return row
    flag_reason = spot_flag(row.native_price, on_demand.native_price)
    return replace(row, flag_reason=flag_reason) if flag_reason else row


def _read_ask(ask: JsonObject, kind: PriceKind, config: SourceConfig) -> Listing | Reject:
    try:
        return _listing(ask, kind, config)
    except RowError as error:
        return ask.reject(error, f"ask {ask.raw.get('id')}")


def _listing(ask: JsonObject, kind: PriceKind, config: SourceConfig) -> Listing:
    price_field = _price_field(ask, kind)
    missing = [name for name in ("gpu_name", "num_gpus", price_field) if ask.get(name) in (None, "")]
    if missing:
        raise RowError(RejectReason.MISSING_FIELD, f"the ask has no {', '.join(missing)}")
    price = ask.price(price_field)
    if price_field == "dph_base":
        _check_disk(ask, price)
    gpu_ram_mib, verification = ask.optional_number("gpu_ram"), ask.optional_text("verification")
    return Listing(
        raw_label=ask.text("gpu_name"),
        gpu_count=ask.gpu_count("num_gpus"),
        price_kind=kind,
        native_price=price,
        native_currency="USD",
        native_unit="instance_hour",
        answer=ask.answer,
        context={"gpu_ram_mib": gpu_ram_mib} if gpu_ram_mib else {},
        region=_region(ask.get("geolocation")),
        available=_available(ask),
        tier=f"marketplace_{verification}" if verification else None,
        interconnect="nvlink" if ask.optional_number("bw_nvlink") else None,
        vcpus=ask.optional_number("cpu_cores_effective"),
        ram_gib=_ram_gib(ask),
        local_disk_gb=config.settings["disk_in_total_gb"] if price_field == "dph_total" else None,
        storage_usd_per_gb_month=ask.optional_decimal("storage_cost"),
        egress_usd_per_gb=ask.optional_decimal("inet_up_cost"),
        download_usd_per_gb=ask.optional_decimal("inet_down_cost"),
        reliability=ask.optional_number("reliability2", "reliability"),
        # The marketplace withdrew its verification of this host: shown, but nobody should be sent there.
        flag_reason=FlagReason.HOST_DEVERIFIED if verification == "deverified" else None,
    )


def _price_field(ask: JsonObject, kind: PriceKind) -> str:
    """The field with the price without disk; a trimmed ask has only the total with the default disk."""
    wanted = ["min_bid", "dph_base"] if kind == "spot" else ["dph_base"]
    return next((name for name in wanted if ask.get(name) not in (None, "")), "dph_total")


def _check_disk(ask: JsonObject, price: Decimal) -> None:
    """The total is the price and the default disk. Raises RowError where it is less."""
    total = ask.optional_decimal("dph_total")
    if total is not None and total < price:
        detail = f"{price} without disk is more than the total of {total}"
        raise RowError(RejectReason.CONFLICTING_PRICES, detail)


def _ram_gib(ask: JsonObject) -> float | None:
    """The ask's share of the host's memory: as much of it as of its CPU, or else of its GPUs."""
    host_mib, cores = ask.optional_number("cpu_ram"), ask.optional_number("cpu_cores")
    effective, share = ask.optional_number("cpu_cores_effective"), ask.optional_number("gpu_frac")
    if cores and effective:
        share = effective / cores
    return host_mib * share / 1024 if host_mib and share else None


def _kind(ask: JsonObject, rental_type: str | None) -> PriceKind:
    """An ask says itself whether it is for bidders; a trimmed one follows the search that showed it."""
    return "spot" if ask.get("is_bid") is True or rental_type == "bid" else "on_demand"


def _region(geolocation: Any) -> str | None:
    """ "Washington, US" unchanged; ", US" is a host that names no town."""
    return str(geolocation).strip(" ,") or None if geolocation else None


def _available(ask: JsonObject) -> bool | None:
    rentable, rented = ask.get("rentable"), ask.get("rented")
    if "rentable" not in ask and "rented" not in ask:
        return None
    return (rentable is True or "rentable" not in ask) and rented is not True


def _search(config: SourceConfig, filters: dict[str, Any], rental_type: str, order: str) -> Request:
    query = filters | {
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "type": rental_type,
        "order": [["dph_total", order]],
        "limit": config.settings["reply_limit"],
    }
    text = json.dumps(query, separators=(",", ":"))
    return Request(f"{config.settings['endpoint']}?q={quote(text)}")


def _query_of(answer: Answer) -> dict[str, Any] | None:
    """The search that the address of the answer names, None where it names none."""
    texts = parse_qs(urlsplit(answer.url).query).get("q", [])
    try:
        query = read_json(texts[0], answer.url) if texts else None
    except ValueError:
        return None
    return query if isinstance(query, dict) else None
