"""Thunder Compute: machines of its API, or else GPUs in two modes from the pricing page's cards or JSON-LD.

The API has three answers whose keys name the same machines: prices per hour, specifications, and which are
available. The page also shows other providers' prices.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bs4 import Tag

from pipeline.sources import kit

_MARK = re.compile(r"\bVRAM:? ?(?P<vram>\d{2,3}) ?GB\b", re.IGNORECASE)
_PRICE = re.compile(
    rf"\bGPU ?/ ?(?:hr|hour)\b[\s():]{{0,6}}(?P<after>{kit.MONEY_IN_TEXT})"
    rf"|(?P<before>{kit.MONEY_IN_TEXT}) ?/ ?GPU ?/ ?(?:hr|hour)\b",
    re.IGNORECASE,
)
_END = re.compile(_PRICE.pattern + r"|\bcontact\b", re.IGNORECASE)
_DOLLARS = re.compile(r"\$")
_MODE_ATTRIBUTES = ("id", "aria-label", "aria-labelledby", "data-mode", "data-tier")
MAX_JSON_LD_DEPTH = 8


def retry_requests(answer: kit.Answer, config: kit.SourceConfig) -> list[kit.Request]:
    """The page, where the API does not answer (it may want a key)."""
    instead = config.settings["page"]
    return [] if answer.url in (instead, config.settings["availability"]) else [kit.Request(instead)]


def read(answers: kit.Answers, config: kit.SourceConfig) -> kit.Reading:
    """The machines of the API; without its prices and specifications, the GPUs of the page, per mode
    (``tier``) where the page names the mode.

    JSON-LD is read where the page shows no cards. Storage, vCPUs and snapshots
    are skipped. Raises SourceChangedError when no GPU is found.
    """
    audit = kit.FieldAudit(config)
    bodies = [audit.item(body, answer, kit.ENVELOPE) for answer, body in _json_objects(answers)]
    prices = next((body for body in bodies if isinstance(body.peek("pricing"), dict)), None)
    # An availability has "specs", too, but of texts.
    with_specs = [body for body in bodies if isinstance(body.peek("specs"), dict)]
    specs = next((body for body in with_specs if _first(body.peek("specs"), dict)), None)
    status = next((body for body in with_specs if _first(body.peek("specs"), str)), None)
    if prices is not None and specs is not None:
        rows = _read_machines(prices, specs, status)
    else:
        rows = (row for answer in answers for row in _read_answer(answer, config))
    yield from kit.at_least_one(rows, f"{config.name}: no GPU in the API, in a card or in JSON-LD")
    yield from audit.warnings()


def _json_objects(answers: kit.Answers) -> Iterator[tuple[kit.Answer, dict[str, Any]]]:
    for answer in answers:
        body = answer.json() if answer.is_json else None
        if isinstance(body, dict):
            yield answer, body


def _first(values: dict[str, Any], kind: type) -> bool:
    return isinstance(next(iter(values.values()), None), kind)


def _read_machines(prices: kit.JsonObject, specs: kit.JsonObject, status: kit.JsonObject | None) -> kit.Rows:
    """One listing per machine that has a specification and a price; other prices are refused."""
    machines = specs.objects_by_name("specs")
    priced = prices.get("pricing")
    available = status.get("specs") if status is not None else {}
    for key, machine in machines.items():
        raw = {key: machine.raw, "price": str(priced.get(key))}
        try:
            yield _machine(key, machine, priced.get(key), available.get(key))
        except kit.RowError as error:
            yield machine.reject(error, key, raw)
    for key in sorted(priced.keys() - machines.keys()):
        if not any(word in key for word in prices.config.settings["extras"]):
            without = kit.RowError(kit.RejectReason.MISSING_FIELD, "a price without a specification")
            yield prices.reject(without, key, {key: str(priced[key])})


def _machine(key: str, machine: kit.JsonObject, price: Any, status: Any) -> kit.Listing:
    if price is None:
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, "a specification without a price")
    vcpus = machine.get("vcpuOptions")
    if not isinstance(vcpus, list) or not vcpus or not all(isinstance(n, int) and n > 0 for n in vcpus):
        raise kit.RowError(kit.RejectReason.MISSING_FIELD, f"vcpuOptions are {vcpus!r}")
    least_vcpus, gib_per_vcpu = min(vcpus), machine.optional_number("ramPerVCPUGiB")
    vram_gb = machine.optional_number("vramGB")
    is_capped = machine.optional_number("ramCapGiB") is not None
    mode = machine.optional_text("mode")
    return kit.Listing(
        raw_label=machine.text("displayName"),
        instance_type=key,
        gpu_count=machine.gpu_count("gpuCount"),
        price_kind="on_demand",
        native_price=kit.price_of(price),
        native_currency=machine.config.currency,
        native_unit="instance_hour",
        answer=machine.answer,
        tier=mode if mode in machine.config.settings["modes"] else None,
        context=kit.known(vram_gb=vram_gb),
        available={"available": True, "unavailable": False}.get(status),
        # The price includes the fewest; how a cap on the memory is applied to them is not documented.
        vcpus=least_vcpus,
        ram_gib=least_vcpus * gib_per_vcpu if gib_per_vcpu and not is_capped else None,
    )


def _read_answer(answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    if answer.is_json:
        yield from _read_products(answer.json(), answer, config)
        return
    soup = kit.page(answer)
    shown = [
        row
        for element, text in kit.cards(soup, _MARK, _END)
        for row in _read_card(element, text, answer, config)
    ]
    yield from shown
    if not shown:
        for document in kit.json_ld(soup, answer):
            yield from _read_products(document, answer, config)


def _other_product(text: str, config: kit.SourceConfig) -> str | None:
    """The name in a text that says that it is of another provider, or of another product than machines."""
    names = [*config.settings["other_providers"], *config.settings["other_products"]]
    return next((n for n in names if re.search(rf"\b{re.escape(n)}\b", text, re.IGNORECASE)), None)


def _mode(text: str, config: kit.SourceConfig) -> str | None:
    """The one mode that a text names; None where it names none or both."""
    found = [
        mode
        for mode, words in config.settings["modes"].items()
        if any(re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) for word in words)
    ]
    return found[0] if len(found) == 1 else None


def _read_card(element: Tag, text: str, answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    heading = element.find_previous(["h1", "h2"])
    if (name := _other_product(f"{text} {kit.text_of(heading) if heading else ''}", config)) is not None:
        yield kit.Reject(kit.RejectReason.OTHER_PRODUCT, f"names {name!r}: {text[:80]!r}", text, answer)
        return
    try:
        label, mark = kit.label_before(text, _MARK, _DOLLARS)
    except kit.RowError as error:
        yield kit.Reject(error.reason, str(error), text, answer)
        return
    prices = kit.prices_with_words(text, _PRICE)
    if not prices:
        reason = kit.RejectReason.NOT_OFFERED if "$" not in text else kit.RejectReason.UNREADABLE_ROW
        yield kit.Reject(reason, f"{label}: no price per GPU-hour", text, answer)
        return
    around = _mode_around(element, config)
    tiers = [_mode(words, config) or around for words, _ in prices]
    if len(set(tiers)) != len(prices):
        yield kit.Reject(
            kit.RejectReason.UNREADABLE_ROW, f"{label}: several prices of the same mode", text, answer
        )
        return
    for tier, (_, price) in zip(tiers, prices, strict=True):
        cell = price["after"] or price["before"]
        context = {"vram_gb": float(mark["vram"])}
        yield kit.gpu_hour_row(label, "on_demand", cell, text, answer, tier=tier, context=context)


def _mode_around(element: Tag, config: kit.SourceConfig) -> str | None:
    """The mode in the names of the elements around a card, or else in the last heading that names one."""
    for part in (element, *element.parents):
        named = " ".join(str(part.get(name) or "") for name in _MODE_ATTRIBUTES)
        if mode := _mode(re.sub(r"[-_]", " ", named), config):
            return mode
    for heading in element.find_all_previous(["h1", "h2", "h3", "h4"]):
        if mode := _mode(kit.text_of(heading), config):
            return mode
    return None


def _read_products(node: Any, answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    for product in _products(node):
        name = str(product.get("name") or "")
        whose = " ".join(str(product.get(part) or "") for part in ("name", "brand", "seller", "offers"))
        if (other := _other_product(whose, config)) is not None:
            yield kit.Reject(kit.RejectReason.OTHER_PRODUCT, f"names {other!r}: {name!r}", product, answer)
            continue
        if any(word in name.casefold() for word in config.settings["extras"]):
            continue
        offers = product.get("offers")
        for offer in offers if isinstance(offers, list) else [offers]:
            yield _read_offer(name, offer if isinstance(offer, dict) else {}, product, answer, config)


def _products(node: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Every Product node, however a page nests them (lists, @graph, itemListElement)."""
    if depth > MAX_JSON_LD_DEPTH:
        return
    if isinstance(node, list):
        for part in node:
            yield from _products(part, depth + 1)
    elif isinstance(node, dict):
        kinds = node.get("@type")
        if "Product" in (kinds if isinstance(kinds, list) else [kinds]):
            yield node
        for key in ("@graph", "itemListElement", "item", "mainEntity", "hasVariant"):
            yield from _products(node.get(key), depth + 1)


def _read_offer(
    name: str, offer: Mapping[str, Any], product: dict[str, Any], answer: kit.Answer, config: kit.SourceConfig
) -> kit.Listing | kit.Reject:
    terms = offer.get("priceSpecification")
    terms = terms if isinstance(terms, dict) else {}
    unit = str(terms.get("unitCode") or terms.get("unitText") or offer.get("unitCode") or "hour").casefold()
    if not name or "lowPrice" in offer or unit not in config.settings["hour_units"]:
        detail = f"{name or 'a product without a name'}: not one price per hour (unit {unit!r})"
        return kit.Reject(kit.RejectReason.UNKNOWN_TERMS, detail, product, answer)
    currency = offer.get("priceCurrency") or terms.get("priceCurrency")
    if not isinstance(currency, str):
        detail = f"{name}: the price names no currency"
        return kit.Reject(kit.RejectReason.MISSING_FIELD, detail, product, answer)
    price = offer.get("price", terms.get("price"))
    tier = _mode(f"{name} {offer.get('name') or ''} {product.get('category') or ''}", config)
    return kit.gpu_hour_field(name, "on_demand", price, currency, product, answer, tier=tier)
