"""JarvisLabs: the cards of the pricing page, or the API's server_meta."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from pipeline.sources import kit

_PRICE = re.compile(
    rf"{kit.MONEY_IN_TEXT}(?: ?(?:/|\bper\b) ?[\w-]+(?:(?:[/ -]| / )(?:hr|hour|h)\b)?)?", re.IGNORECASE
)
_CARD_END = re.compile(_PRICE.pattern + r"|\b(?:contact|talk to|sold out)\b", re.IGNORECASE)


def requests(config: kit.SourceConfig, environment: Mapping[str, str]) -> list[kit.Request]:
    """Return a request to the API if its key is set, else to the page."""
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
        price, available = gpu.get(name), kit.is_available(free)
        yield kit.gpu_hour_field(
            label, kind, price, "USD", gpu.raw, gpu.answer, available=available, **machine
        )


def _vram(stated: Any) -> dict[str, float]:
    """Return the memory per GPU in GB, from ``"80"`` or ``80 GB``; nothing for another text."""
    memory_gb = kit.optional_number(re.sub(r" ?G(i?B)?$", "", str(stated).strip(), flags=re.IGNORECASE))
    return {} if memory_gb is None else {"vram_gb": memory_gb}


def _read_page(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    spec = _spec(tuple(audit.config.settings["generations"]))
    for _, text in kit.cards(kit.page(answer), spec, _CARD_END):
        yield from _read_card(text, spec, answer, audit.config)


def _read_price(
    label: str,
    words: str,
    cell: str,
    context: Mapping[str, Any],
    answer: kit.Answer,
    config: kit.SourceConfig,
) -> kit.Listing | kit.Reject:
    """Return the row of a price, whose terms are in the words before it."""
    raw = {"label": label, "term": words, "price": cell}
    if any(word in words.casefold() for word in config.settings["other_terms"]):
        return kit.Reject(kit.RejectReason.UNKNOWN_TERMS, f"{label}: a price under {words!r}", raw, answer)
    kind: kit.PriceKind = "spot" if kit.price_kind(words) == "spot" else "on_demand"
    return kit.gpu_hour_row(label, kind, cell, raw, answer, context=context)


@cache
def _spec(generations: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of the text that every card has once: ``Hopper · 80 GB``."""
    names = "|".join(sorted(map(re.escape, generations), key=len, reverse=True))
    return re.compile(rf"\b(?:{names}) ?[·•|] ?(?P<vram>\d{{1,4}}) ?GB\b")


def _read_card(text: str, spec: re.Pattern[str], answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    try:
        label, found = kit.label_before(text, spec, _PRICE)
        rest, context = text[found.end() :], _vram(found["vram"])
        prices = [(words, price[0]) for words, price in kit.prices_with_words(rest, _PRICE)]
        prices = prices or [("", rest.strip() or "-")]
        rows = [_read_price(label, words, cell, context, answer, config) for words, cell in prices]
        kinds = [row.price_kind for row in rows if isinstance(row, kit.Listing)]
        if len(kinds) != len(set(kinds)):
            raise kit.RowError(kit.RejectReason.UNREADABLE_ROW, f"{label}: several prices of the same kind")
    except kit.RowError as error:
        rows = [kit.Reject(error.reason, str(error), text, answer)]
    yield from rows
