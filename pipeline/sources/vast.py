"""Vast.ai: asks of a marketplace of hosts, one offer per ask."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, Request, SourceChangedError
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.answers import each_answer
from pipeline.parsing.json_lists import items_of
from pipeline.parsing.prices import optional_number
from pipeline.parsing.text import UnreadableError, number, whole_number

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
    """A full reply hides the rest: ask per GPU count, and a full count from the dear end as well."""
    query = _query_of(answer)
    if query is None or len(items_of(answer, "offers")) < config.settings["reply_limit"]:
        return []
    filters: dict[str, Any] = {key: query[key] for key in ("gpu_name", "num_gpus") if key in query}
    if query["order"] != [["dph_total", "asc"]]:
        return []
    if "num_gpus" in filters:
        return [_search(config, filters, query["type"], "desc")]
    counts = config.settings["gpu_counts"]
    shares = [{"eq": count} for count in counts] + [{"notin": counts}]
    return [_search(config, filters | {"num_gpus": share}, query["type"], "asc") for share in shares]


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """Every ask once, though several searches may show it. Asks for CPUs only are none of ours.

    Raises SourceChangedError when no search shows any ask.
    """
    seen: dict[tuple[Any, PriceKind], Listing | Reject] = {}
    asks = 0
    searches, refused = each_answer(answers, lambda answer: items_of(answer, "offers"))
    yield from refused
    for answer, found in searches:
        rental_type = (_query_of(answer) or {}).get("type")
        for ask in found:
            asks += 1
            if ask.get("resource_type") not in (None, "gpu"):
                continue
            kind = _kind(ask, rental_type)
            ask_id = ask.get("id")
            key = (str(ask_id) if isinstance(ask_id, int | str) and ask_id else f"unnamed {asks}", kind)
            if key in seen:
                yield _reject(
                    RejectReason.DUPLICATE, f"ask {key[0]} was shown by an earlier search", ask, answer
                )
            else:
                seen[key] = _read_ask(ask, kind, answer)
    if not asks:
        raise SourceChangedError(f"{config.name}: no search shows any ask")
    for (ask_id, _), row in seen.items():
        yield _flagged(row, seen.get((ask_id, "on_demand")))


def _flagged(row: Listing | Reject, on_demand: Listing | Reject | None) -> Listing | Reject:
    """A bid that is not below the same ask's fixed price is doubtful: nobody would bid."""
    if not isinstance(row, Listing) or not isinstance(on_demand, Listing) or row.price_kind != "spot":
        return row
    dear = row.native_price >= on_demand.native_price
    return replace(row, flag_reason=FlagReason.SPOT_NOT_BELOW_ON_DEMAND) if dear else row


def _read_ask(ask: dict[str, Any], kind: PriceKind, answer: Answer) -> Listing | Reject:
    price_field = "min_bid" if kind == "spot" and ask.get("min_bid") is not None else "dph_total"
    missing = [name for name in ("gpu_name", "num_gpus", price_field) if ask.get(name) in (None, "")]
    if missing:
        return _reject(RejectReason.MISSING_FIELD, f"the ask has no {', '.join(missing)}", ask, answer)
    try:
        price = number(ask[price_field])
        if price <= 0:
            return _reject(RejectReason.ZERO_PRICE, f"{price_field} is {price}", ask, answer)
        return Listing(
            raw_label=str(ask["gpu_name"]),
            gpu_count=_count(ask["num_gpus"]),
            price_kind=kind,
            native_price=price,
            native_currency="USD",
            native_unit="instance_hour",
            answer=answer,
            context={"gpu_ram_mib": ram} if (ram := optional_number(ask.get("gpu_ram"))) else {},
            region=_region(ask.get("geolocation")),
            available=_available(ask),
            tier=_tier(ask),
            interconnect="nvlink" if optional_number(ask.get("bw_nvlink")) else None,
            vcpus=optional_number(ask.get("cpu_cores_effective")),
            local_disk_gb=optional_number(ask.get("disk_space")),
            storage_usd_per_gb_month=_usd(ask.get("storage_cost")),
            egress_usd_per_gb=_usd(ask.get("inet_up_cost")),
            reliability=optional_number(ask.get("reliability2") or ask.get("reliability")),
            # The marketplace took its word for this host back: shown, but nobody should be sent there.
            flag_reason=FlagReason.HOST_DEVERIFIED if ask.get("verification") == "deverified" else None,
        )
    except UnreadableError as error:
        return _reject(RejectReason.UNREADABLE_ROW, str(error), ask, answer)


def _count(value: Any) -> int:
    count = whole_number(value)
    if count < 1:
        raise UnreadableError(f"num_gpus is {count}")
    return count


def _reject(reason: RejectReason, detail: str, ask: dict[str, Any], answer: Answer) -> Reject:
    return Reject(reason, detail, ask, answer)


def _kind(ask: dict[str, Any], rental_type: str | None) -> PriceKind:
    """An ask says itself whether it is for bidders; a trimmed one follows the search that showed it."""
    return "spot" if ask.get("is_bid") is True or rental_type == "bid" else "on_demand"


def _tier(ask: dict[str, Any]) -> str | None:
    verification = ask.get("verification")
    return f"marketplace_{verification}" if isinstance(verification, str) and verification else None


def _region(geolocation: Any) -> str | None:
    """ "Washington, US" as it is; ", US" is a host that names no town."""
    return str(geolocation).strip(" ,") or None if geolocation else None


def _available(ask: dict[str, Any]) -> bool | None:
    if "rentable" not in ask and "rented" not in ask:
        return None
    return ask.get("rentable", True) is True and ask.get("rented", False) is not True


def _usd(value: Any) -> Decimal | None:
    try:
        return None if value is None else number(value)
    except UnreadableError:
        return None


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
        query = json.loads(texts[0]) if texts else None
    except ValueError:
        return None
    return query if isinstance(query, dict) else None
