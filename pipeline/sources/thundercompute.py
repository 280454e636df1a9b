"""Thunder Compute: machines from its API, or else GPUs, in two modes, from the pricing page's cards.

The API gives three answers with the same machines as keys: prices per hour, specifications and availability.
The page also shows other providers' prices.
"""

import re
from typing import Any

from pipeline.sources import kit

_MARK = re.compile(r"\bVRAM:? ?(?P<vram>\d{2,3}) ?GB\b", re.IGNORECASE)
_PRICE = re.compile(rf"\bGPU ?/ ?(?:hr|hour)\b[\s():]{{0,6}}({kit.MONEY_IN_TEXT})", re.IGNORECASE)
_END = re.compile(_PRICE.pattern + r"|\bcontact\b", re.IGNORECASE)
_DOLLARS = re.compile(r"\$")


def retry_requests(answer: kit.Answer, config: kit.SourceConfig) -> list[kit.Request]:
    """Return a request for the page if the API does not answer (it may require a key)."""
    instead = config.settings["page"]
    return [] if answer.url in (instead, config.settings["availability"]) else [kit.Request(instead)]


@kit.joint_reader("no GPU in the API or in a card")
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """The machines in the API; if its prices or specifications are missing, the GPUs on the page, with their
    mode as ``tier``. Storage, vCPUs and snapshots are skipped."""
    documents = [(answer.json(), answer) for answer in answers if answer.is_json]
    bodies = [audit.item(body, answer, kit.ENVELOPE) for body, answer in documents if isinstance(body, dict)]
    prices = _body_with("pricing", object, bodies)
    # The availability response also contains "specs", but its values are strings.
    specs, status = (_body_with("specs", kind, bodies) for kind in (dict, str))
    if prices is not None and specs is not None:
        yield from _read_machines(prices, specs, status)
    else:
        for answer in answers:
            yield from () if answer.is_json else _read_page(answer, audit.config)


def _body_with(field: str, kind: type, bodies: list[kit.JsonObject]) -> kit.JsonObject | None:
    """Return the first answer whose ``field`` is an object with values of type ``kind``."""
    for body in bodies:
        values = body.peek(field)
        if isinstance(values, dict) and isinstance(next(iter(values.values()), None), kind):
            return body
    return None


def _read_machines(prices: kit.JsonObject, specs: kit.JsonObject, status: kit.JsonObject | None) -> kit.Rows:
    """Yield a listing per machine with a specification and a price, and a reject if either is missing."""
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
    mode = machine.get("mode")
    return machine.listing(
        machine.text("displayName"),
        machine.gpu_count("gpuCount"),
        kit.price_of(price),
        instance_type=key,
        tier=_tier(str(mode), machine.config) if mode else None,
        context=kit.known(vram_gb=vram_gb),
        available={"available": True, "unavailable": False}.get(str(status)),
        # The price includes the smallest vCPU option; how a memory cap limits the memory is undocumented.
        vcpus=least_vcpus,
        ram_gib=least_vcpus * gib_per_vcpu if gib_per_vcpu and not is_capped else None,
    )


def _reject_other_product(text: str, shown: str, config: kit.SourceConfig) -> None:
    """Raise RowError for a string that names another provider, or a product other than machines."""
    for name in (*config.settings["other_providers"], *config.settings["other_products"]):
        if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE):
            raise kit.RowError(kit.RejectReason.OTHER_PRODUCT, f"names {name!r}: {shown!r}")


def _read_page(answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    """Yield a row per card; if no heading names a mode, the page lists only one kind of machine."""
    titled = []
    for element, text in kit.cards(kit.page(answer), _MARK, _END):
        heading = element.find_previous(["h1", "h2"])
        titled.append((kit.text_of(heading) if heading else "", text))
    has_modes = any(_modes(title, config) for title, _ in titled)
    for title, text in titled:
        yield _read_card(title, text, answer, config, has_modes=has_modes)


def _modes(text: str, config: kit.SourceConfig) -> list[str]:
    modes = config.settings["modes"]
    return [mode for mode in modes if re.search(rf"\b{mode}\b", text, re.IGNORECASE)]


def _tier(text: str, config: kit.SourceConfig) -> str:
    """Return the mode that a string names. Raises RowError unless it names exactly one."""
    found = _modes(text, config)
    if len(found) != 1:
        raise kit.RowError(kit.RejectReason.UNKNOWN_TERMS, f"{len(found)} modes are named in {text[:80]!r}")
    return found[0]


def _read_card(
    title: str, text: str, answer: kit.Answer, config: kit.SourceConfig, *, has_modes: bool
) -> kit.Listing | kit.Reject:
    try:
        _reject_other_product(f"{text} {title}", text[:80], config)
        tier = _tier(title, config) if has_modes else None
        label, mark = kit.label_before(text, _MARK, _DOLLARS)
        prices = _PRICE.findall(text)
        if len(prices) != 1:
            reason = kit.RejectReason.UNREADABLE_ROW if "$" in text else kit.RejectReason.NOT_OFFERED
            raise kit.RowError(reason, f"{label}: {len(prices)} prices per GPU-hour")
    except kit.RowError as error:
        return kit.Reject(error.reason, str(error), text, answer)
    context = {"vram_gb": float(mark["vram"])}
    return kit.gpu_hour_row(label, "on_demand", prices[0], text, answer, tier=tier, context=context)
