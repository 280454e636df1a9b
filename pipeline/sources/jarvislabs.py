"""JarvisLabs: the cards of the pricing page, or the API's server_meta."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from pipeline.sources import kit

_PRICE = re.compile(
    rf"{kit.MONEY_IN_TEXT}(?: ?(?:/|\bper\b) ?[\w-]+(?:(?:[/ -]| / )(?:hr|hour|h)\b)?"
    r"|[^$€£₹]{0,20}?\b(?:(?:second|minute|dai|day|week|month|quarter|year|annual)\w*|mo\b|yr\b))?",
    re.IGNORECASE,
)
"""A price with its unit, or with the words up to a unit of time other than an hour ("$30 billed monthly")."""

_CARD_END = re.compile(_PRICE.pattern + r"|\b(?:contact|talk to|sold out)\b", re.IGNORECASE)


def requests(config: kit.SourceConfig, environment: Mapping[str, str]) -> list[kit.Request]:
    """Return a request for the API if its key is set, or else for the page."""
    (key,) = config.key_variables
    if config.has_key(environment):
        return [kit.Request(config.settings["api_url"], headers={"Authorization": f"Bearer ${{{key}}}"})]
    return _page_requests(config)


def retry_requests(answer: kit.Answer, config: kit.SourceConfig) -> list[kit.Request]:
    """Return a request for the page, which needs no key, if the API fails: the key may be wrong or
    expired."""
    return _page_requests(config) if answer.url == config.settings["api_url"] else []


def _page_requests(config: kit.SourceConfig) -> list[kit.Request]:
    return [kit.Request(request.url) for request in config.requests]


@kit.reader("no GPU in a card or server_meta")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """GPUs by the hour, on demand and spot. CPU machines and storage are skipped."""
    return _read_server_meta(answer, audit) if answer.is_json else _read_page(answer, audit)


def _read_server_meta(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    return kit.read_rows(audit.items(answer, "server_meta"), _read_gpu, "gpu_type", "region")


def _read_gpu(gpu: kit.JsonObject) -> kit.Rows:
    machine = {
        "context": _vram(gpu.get("vram")),
        "region": gpu.optional_text("region"),
        "vcpus": gpu.optional_number("cpus_per_gpu"),
        "ram_gib": gpu.optional_number("ram_per_gpu"),
        "gpu_counts": tuple(range(1, gpu.gpu_count("num_gpus") + 1)) if gpu.get("num_gpus") else None,
    }
    prices: list[tuple[kit.PriceKind, str, Any]] = [
        ("on_demand", "price_per_hour", gpu.get("effective_num_free_devices", "num_free_devices"))
    ]
    if "spot_price" in gpu:
        prices.append(("spot", "spot_price", gpu.get("spot_num_free_devices")))
    label = gpu.text("gpu_type")
    for kind, name, free in prices:
        try:
            yield gpu.listing(
                label,
                1,
                gpu.price(name),
                price_kind=kind,
                native_unit="gpu_hour",
                available=kit.is_available(free),
                **machine,
            )
        except kit.RowError as error:
            yield gpu.reject(error, f"{label}, {kind}")


def _vram(stated: Any) -> dict[str, float]:
    """Return the memory per GPU in GB from a value such as ``80`` or ``80 GB``; {} for any other value."""
    memory_gb = kit.optional_number(re.sub(r" ?G(i?B)?$", "", str(stated).strip(), flags=re.IGNORECASE))
    return {} if memory_gb is None else {"vram_gb": memory_gb}


def _read_page(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    spec = _spec(tuple(audit.config.settings["generations"]))
    for _, text in kit.cards(kit.page(answer), spec, _CARD_END):
        yield _read_card(text, spec, answer)


@cache
def _spec(generations: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the text that occurs once in every card, such as ``Hopper · 80 GB``."""
    names = "|".join(sorted(map(re.escape, generations), key=len, reverse=True))
    return re.compile(rf"\b(?:{names}) ?[·•|] ?(?P<vram>\d{{1,4}}) ?GB\b")


def _read_card(text: str, spec: re.Pattern[str], answer: kit.Answer) -> kit.Listing | kit.Reject:
    """Return the row for a card. The price must follow the memory directly."""
    try:
        label, found = kit.label_before(text, spec, _PRICE)
        rest = text[found.end() :].strip()
        prices = list(_PRICE.finditer(rest))
        if len(prices) > 1:
            raise kit.RowError(kit.RejectReason.UNREADABLE_ROW, f"{label}: several prices")
    except kit.RowError as error:
        return kit.Reject(error.reason, str(error), text, answer)
    cell = rest[: prices[0].end()] if prices else rest or "-"
    return kit.gpu_hour_row(label, "on_demand", cell, text, answer, context=_vram(found["vram"]))
