"""Vast.ai: asks in a marketplace of hosts, with one offer per ask and another for its minimum bid.

The marketplace lists its names for GPUs. A search for several names shows at most 64 asks. A full reply is
followed by smaller searches: for half of the names, then for one name by number of GPUs, and finally for the
dearest asks with one number of GPUs.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from pipeline.sources import kit

_CHEAPEST_FIRST = [["dph_total", "asc"]]
_DEAREST_FIRST = [["dph_total", "desc"]]

_Searches = Sequence[tuple[kit.Answer, list[kit.JsonObject]]]
"""Answers to searches, each with its asks."""

_ADDRESS_FIELD = rb'"public_ipaddr"\s*:\s*(?:"[^"]*"?|null)\s*'
_ADDRESS = re.compile(_ADDRESS_FIELD + rb",\s*")
_ADDRESS_AT_END = re.compile(rb",?\s*" + _ADDRESS_FIELD)


def redact(body: bytes) -> bytes:
    """Return the answer without the hosts' IP addresses, otherwise unchanged, even if its JSON is broken."""
    return _ADDRESS_AT_END.sub(b"", _ADDRESS.sub(b"", body))


def retry_requests(answer: kit.Answer, config: kit.SourceConfig) -> list[kit.Request]:
    """Return searches for the names in the yaml if the request for the list of names fails."""
    return _searches(config.settings["gpu_names"], config) if answer.url == config.requests[0].url else []


def next_requests(answer: kit.Answer, config: kit.SourceConfig) -> list[kit.Request]:
    """Return searches for the names in a list, or smaller searches after a full reply.

    The API has no offset or cursor, so the yaml cannot declare this as paging.
    """
    if answer.url == config.requests[0].url:
        return _searches(_names_in(answer) or config.settings["gpu_names"], config)
    query = _query_of(answer)
    if query.get("order") != _CHEAPEST_FIRST:
        return []
    if not _is_full(kit.FieldAudit(config).items(answer, "offers"), config):
        return []
    names = query.get("gpu_name", {}).get("in", [])
    if len(names) > 1:
        half = len(names) // 2
        return [_search(_one_of(part), config) for part in (names[:half], names[half:])]
    filters = _filters(query)
    if "num_gpus" in filters:
        return [_search(filters, config, _DEAREST_FIRST)]
    counts = config.settings["gpu_counts"]
    shares = [{"eq": count} for count in counts] + [{"notin": counts}]
    return [_search(filters | {"num_gpus": share}, config) for share in shares]


@kit.joint_reader("no search shows any ask")
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """Every ask, only once even if several searches show it, and its minimum bid. CPU-only asks are skipped;
    a search that hides asks becomes a reject."""
    lists = [answer for answer in answers if _is_list_of_names(answer, audit.config)]
    if any(not _names_in(answer) for answer in lists):
        yield kit.ReaderWarning("the list of GPU names cannot be read: only names of the yaml were requested")
    searches, refused = kit.each_answer(
        [answer for answer in answers if answer not in lists], lambda answer: audit.items(answer, "offers")
    )
    yield from refused
    yield from _read_asks(searches)
    yield from _cut_off(searches, audit.config)


def _read_asks(searches: _Searches) -> kit.Rows:
    seen: set[tuple[str, kit.PriceKind]] = set()
    for answer, found in searches:
        is_for_bids = _query_of(answer).get("type") == "bid"
        for ask in found:
            if ask.peek("resource_type") not in (None, "gpu"):
                continue
            kind: kit.PriceKind = "spot" if ask.get("is_bid") is True else "on_demand"
            ask_id = ask.get("id")
            name = str(ask_id) if isinstance(ask_id, int | str) and ask_id else f"unnamed {len(seen)}"
            if is_for_bids and kind == "on_demand":
                detail = "a search for bids shows it, and it does not say that it is one"
                yield ask.reject(kit.RowError(kit.RejectReason.UNKNOWN_PRICE_KIND, detail), f"ask {name}")
                continue
            if (name, kind) in seen:
                error = kit.RowError(kit.RejectReason.DUPLICATE, "shown by an earlier search")
                yield ask.reject(error, f"ask {name}")
                continue
            row = _read_ask(ask, kind)
            yield row
            seen.add((name, kind))
            has_bid = ask.get("min_bid") is not None and (name, "spot") not in seen
            if kind == "on_demand" and isinstance(row, kit.Listing) and has_bid:
                yield _read_ask(ask, "spot", row.native_price)
                seen.add((name, "spot"))


def _cut_off(searches: _Searches, config: kit.SourceConfig) -> Iterator[kit.Reject]:
    """Yield a reject for each search whose two replies, cheapest first and dearest first, are full and have
    no ask in common."""
    ids = {answer.url: {str(ask.peek("id")) for ask in found} for answer, found in searches}
    for answer, found in searches:
        query = _query_of(answer)
        if query.get("order") != _DEAREST_FIRST or not _is_full(found, config):
            continue
        filters = _filters(query)
        cheapest = ids.get(_search(filters, config).url, set())
        if not cheapest & ids[answer.url]:
            detail = f"{json.dumps(filters)}: some asks between the cheapest and the dearest are not shown"
            yield kit.Reject(kit.RejectReason.UNREAD_PAGE, detail, filters, answer)


def _is_full(found: Sequence[kit.JsonObject], config: kit.SourceConfig) -> bool:
    return len(found) >= int(config.settings["reply_limit"])


def _read_ask(
    ask: kit.JsonObject, kind: kit.PriceKind, on_demand: Decimal | None = None
) -> kit.Listing | kit.Reject:
    """Return an ask at its price or at its minimum bid; a bid not below the fixed price is flagged."""
    try:
        row = _listing(ask, kind)
    except kit.RowError as error:
        return ask.reject(error, f"ask {ask.raw.get('id')}")
    flag_reason = kit.spot_flag(row.native_price, on_demand)
    return replace(row, flag_reason=flag_reason) if flag_reason else row


def _listing(ask: kit.JsonObject, kind: kit.PriceKind) -> kit.Listing:
    price_field = _price_field(ask, kind)
    missing = [name for name in ("gpu_name", "num_gpus", price_field) if ask.get(name) in (None, "")]
    if missing:
        raise kit.RowError(kit.RejectReason.MISSING_FIELD, f"the ask has no {', '.join(missing)}")
    price = ask.price(price_field)
    if price_field == "dph_base":
        _check_disk(ask, price)
    gpu_ram_mib, verification = ask.optional_number("gpu_ram"), ask.optional_text("verification")
    return ask.listing(
        ask.text("gpu_name"),
        ask.gpu_count("num_gpus"),
        price,
        price_kind=kind,
        listing_id=str(ask.get("id")) if ask.get("id") else None,
        context=kit.known(gpu_ram_mib=gpu_ram_mib),
        region=_region(ask.get("geolocation")),
        available=_available(ask),
        tier=f"marketplace_{verification}" if verification else None,
        interconnect="nvlink" if ask.optional_number("bw_nvlink") else None,
        vcpus=ask.optional_number("cpu_cores_effective"),
        ram_gib=_ram_gib(ask),
        local_disk_gb=ask.config.settings["disk_in_total_gb"] if price_field == "dph_total" else None,
        storage_usd_per_gb_month=ask.optional_decimal("storage_cost"),
        egress_usd_per_gb=ask.optional_decimal("inet_up_cost"),
        download_usd_per_gb=ask.optional_decimal("inet_down_cost"),
        reliability=ask.optional_number("reliability2", "reliability"),
        # The marketplace withdrew its verification of this host: shown, but not recommended.
        flag_reason=kit.FlagReason.HOST_DEVERIFIED if verification == "deverified" else None,
    )


def _price_field(ask: kit.JsonObject, kind: kit.PriceKind) -> str:
    """Return the field for the price without disk or, for a trimmed ask, the total with the default disk."""
    wanted = ["min_bid", "dph_base"] if kind == "spot" else ["dph_base"]
    return next((name for name in wanted if ask.get(name) not in (None, "")), "dph_total")


def _check_disk(ask: kit.JsonObject, price: Decimal) -> None:
    """Raise RowError if the total, which includes the default disk, is below the price."""
    total = ask.optional_decimal("dph_total")
    if total is not None and total < price:
        detail = f"{price} without disk is more than the total of {total}"
        raise kit.RowError(kit.RejectReason.CONFLICTING_PRICES, detail)


def _ram_gib(ask: kit.JsonObject) -> float | None:
    """Return the host's memory times the ask's share of the host's CPU or, if unknown, of the host's GPUs."""
    host_mib, cores = ask.optional_number("cpu_ram"), ask.optional_number("cpu_cores")
    effective, share = ask.optional_number("cpu_cores_effective"), ask.optional_number("gpu_frac")
    if cores and effective:
        share = effective / cores
    return host_mib * share / 1024 if host_mib and share else None


def _region(geolocation: Any) -> str | None:
    """Return a region such as "Washington, US"; a string such as ", US" names no town."""
    return str(geolocation).strip(" ,") or None if geolocation else None


def _available(ask: kit.JsonObject) -> bool | None:
    rentable, rented = ask.get("rentable"), ask.get("rented")
    if "rentable" not in ask and "rented" not in ask:
        return None
    return (rentable is True or "rentable" not in ask) and rented is not True


def _is_list_of_names(answer: kit.Answer, config: kit.SourceConfig) -> bool:
    """True if an answer comes from the list's URL, unless it contains asks, as a saved file may."""
    if answer.url != config.requests[0].url:
        return False
    body = answer.json() if answer.is_json else None
    asks = body.get("offers") if isinstance(body, dict) else body
    return not (isinstance(asks, list) and asks and isinstance(asks[0], dict))


def _names_in(answer: kit.Answer) -> list[str]:
    """Return the names in a list, sorted so that each day's searches are alike; [] for any other answer."""
    body = answer.json() if answer.is_json else None
    names = body.get("gpu_names") if isinstance(body, dict) else None
    return sorted({name for name in names if isinstance(name, str)}) if isinstance(names, list) else []


def _searches(names: Sequence[str], config: kit.SourceConfig) -> list[kit.Request]:
    """Return a search for each group of names."""
    size = int(config.settings["names_per_search"])
    groups = [names[at : at + size] for at in range(0, len(names), size)]
    return [_search(_one_of(group), config) for group in groups]


def _one_of(names: Sequence[str]) -> dict[str, Any]:
    return {"gpu_name": {"in": list(names)}}


def _search(
    filters: dict[str, Any], config: kit.SourceConfig, order: list[list[str]] | None = None
) -> kit.Request:
    query = filters | {
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "type": "on-demand",
        "order": order or _CHEAPEST_FIRST,
        "limit": config.settings["reply_limit"],
        "allocated_storage": config.settings["disk_in_total_gb"],
    }
    text = json.dumps(query, separators=(",", ":"))
    return kit.Request(f"{config.settings['endpoint']}?q={quote(text)}")


def _query_of(answer: kit.Answer) -> dict[str, Any]:
    """Return the search in the answer's URL, or {} if there is none."""
    texts = parse_qs(urlsplit(answer.url).query).get("q", [])
    try:
        query = kit.read_json(texts[0], answer.url) if texts else None
    except ValueError:
        return {}
    return query if isinstance(query, dict) else {}


def _filters(query: dict[str, Any]) -> dict[str, Any]:
    """Return those filters of a query that distinguish it from other searches."""
    return {key: query[key] for key in ("gpu_name", "num_gpus") if key in query}
