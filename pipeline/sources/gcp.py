"""Google Cloud: machines on the accelerator-optimized page, or sums of their parts' prices in the billing
catalogue."""

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pipeline.sources import kit

PRICE_TABLE = (r"^machine type\b", r"^gpus?\b", r"price|pricing|CUD")
ON_DEMAND_COLUMN = r"^(?:on-demand )?price\b"
DWS_COLUMN = r"\bDWS\b|flex-start|calendar mode"
DWS_TIERS = {"flex_start": r"flex-start", "calendar_mode": r"calendar mode"}
"""The two tiers of the Dynamic Workload Scheduler, with the words that identify each in a column's header."""

KIND_BY_USAGE: Mapping[str, kit.PriceKind] = {
    "OnDemand": "on_demand",
    "Preemptible": "spot",
    "flex_start": "flex_start",
    "calendar_mode": "flex_start",
}

_MODEL_ID = re.compile(r" ?(?:info )?Consumption model ID\b.*", re.IGNORECASE)
"""Billing identifier that follows a header's caption."""

_IDENTIFIER = re.compile(r"(?<=Consumption model ID)[: ]{1,3}[0-9A-Z]{1,8}(?:-[0-9A-Z]{1,8})*", re.IGNORECASE)

_DWS_USAGE = {
    "flex_start": re.compile(r" attached to DWS Defined Duration VMs\b"),
    "calendar_mode": re.compile(r"^DWS Calendar Mode "),
}
_COMPONENT_PREFIX = re.compile(r"^(?:Spot Preemptible|DWS Calendar Mode) ")
_COMPONENT_SUFFIX = re.compile(
    r"(?: attached to (?:Spot Preemptible|DWS Defined Duration) VMs)?(?: running)?(?: in [A-Z][^()]{0,60})?$"
)


@kit.joint_reader()
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """Machines on the page, and machines in the catalogue that are not on the page.

    Raises SourceChangedError for a page without a price table, and for a catalogue without GPUs.
    """
    on_page = [row for answer in answers if not answer.is_json for row in _read_page(answer, audit)]
    yield from on_page
    here = audit.config.attributes.region
    valid = [row for row in on_page if isinstance(row, kit.Listing) and _is_valid_today(row)]
    known = {(*_machine_and_kind(row), here) for row in valid}
    catalog = [answer for answer in answers if answer.is_json]
    for row in _read_catalog(catalog, audit) if catalog else ():
        if not isinstance(row, kit.Listing) or (*_machine_and_kind(row), row.region) not in known:
            yield row


def _machine_and_kind(row: kit.Listing) -> tuple[str, kit.PriceKind, str | None]:
    return row.raw_label, row.price_kind, row.tier


def _is_valid_today(row: kit.Listing) -> bool:
    starts_later = row.effective_from is not None and row.effective_from > kit.day_of(row.answer)
    return not starts_later and row.flag_reason is not kit.FlagReason.SUPERSEDED


# --- the page -----------------------------------------------------------------------------------------------


def _read_page(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    grids = [kit.table(tag) for tag in kit.page(answer).find_all("table")]
    priced = [grid for grid in grids if _is_priced(grid)]
    if not priced:
        raise answer.changed("no table of machine types, GPUs and prices")
    for grid in grids:
        captions = [_MODEL_ID.sub("", header) for header in grid.headers]
        audit.table(captions, is_read=_is_priced(grid))
    rows = [row for grid in priced for row in _read_table(grid, answer, audit.config)]
    if not rows:
        raise answer.changed("the price tables have no machine")
    yield from rows


def _is_priced(grid: kit.Table) -> bool:
    return all(kit.columns(grid.headers, pattern) for pattern in PRICE_TABLE)


def _read_table(grid: kit.Table, answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    machine_at, gpu_at, parts_at = (
        kit.column(grid.headers, pattern, answer)
        for pattern in (r"^machine type\b", r"^gpus?\b", r"^components\b")
    )
    # An identifier may contain four digits that look like a year.
    prices = _price_columns([_IDENTIFIER.sub("", header) for header in grid.headers], answer)
    other_dws = set(kit.columns(grid.headers, DWS_COLUMN)) - {price.at for price in prices}
    machines = kit.Table(
        grid.headers, [cells for cells in grid.rows if not _is_section(kit.texts_of(cells), gpu_at)]
    )
    yield from machines.other_rows(answer)
    for _, texts in machines.full_rows():
        name = texts[machine_at]
        try:
            machine = _machine(name, texts[gpu_at], texts[parts_at]) | {"answer": answer}
        except kit.UnreadableError as error:
            yield kit.Reject(kit.RejectReason.UNREADABLE_ROW, f"{name}: {error}", texts, answer)
        else:
            yield from _read_prices(name, machine, texts, prices, config)
        for at in other_dws:
            if not kit.is_not_offered(texts[at]):
                detail = f"{name}: {grid.headers[at]} is of an unknown kind"
                yield kit.Reject(kit.RejectReason.OTHER_PRICE_KIND, detail, texts, answer)


def _is_section(texts: list[str], gpu_at: int) -> bool:
    """True if a row only names a machine family, either in one wide cell or beside an empty GPU cell."""
    is_name = len(set(texts)) == 1 or texts[gpu_at : gpu_at + 1] == [""]
    return is_name and not any("$" in text for text in texts)


def _machine(name: str, gpu: str, components: str) -> dict[str, Any]:
    """Return the columns for a machine's listings. Raises UnreadableError if the GPU count is missing."""
    parts = _components(components)
    return {
        "label_kind": "instance_type",
        "instance_type": name,
        "gpu_count": parts["gpus"],
        "context": {"gpu_name": gpu},
        "vcpus": parts.get("vcpus"),
        "ram_gib": parts.get("memory"),
        "local_disk_gb": kit.gb_from_gib(parts["ssd"]) if "ssd" in parts else None,
    }


def _price_columns(headers: list[str], answer: kit.Answer) -> list[kit.PriceColumn]:
    """Return the price columns with their periods of validity. Raises SourceChangedError if a term or day
    cannot be read, if there is no on-demand column, or if two take effect on the same day."""
    on_demand, dws = kit.columns(headers, ON_DEMAND_COLUMN), kit.columns(headers, DWS_COLUMN)
    found = [kit.PriceColumn(at, headers[at], "on_demand") for at in on_demand]
    for price in kit.price_columns(headers, answer):
        if price.at in (*on_demand, *dws) or price.kind == "on_demand":
            continue
        if price.kind == "reserved" and price.term_days is None:
            raise answer.changed(f"{price.header!r} does not say how many years")
        tier = "flexible_cud" if re.search("flexible", price.header, re.IGNORECASE) else "resource_cud"
        found.append(replace(price, tier=tier) if price.kind == "reserved" else price)
    for at in dws:
        tiers = [tier for tier, words in DWS_TIERS.items() if re.search(words, headers[at], re.IGNORECASE)]
        if len(tiers) == 1:
            found.append(kit.PriceColumn(at, headers[at], "flex_start", tier=tiers[0]))
    found = kit.with_validity(found, answer)
    kit.require_on_demand(found, headers, answer)
    return found


def _read_prices(
    name: str,
    machine: dict[str, Any],
    texts: list[str],
    prices: list[kit.PriceColumn],
    config: kit.SourceConfig,
) -> kit.Rows:
    for price in prices:
        if price.kind == "flex_start" and kit.is_not_offered(texts[price.at]):
            continue  # few machines have these prices
        try:
            found = kit.cell_price(texts[price.at], currencies=["USD"])
        except kit.RowError as error:
            yield error.reject(f"{name}, {price.kind}", texts, machine["answer"])
            continue
        yield found.listing(
            name,
            **machine,
            price_kind=price.kind,
            term_days=price.term_days,
            tier=price.tier,
            effective_from=price.effective_from,
            flag_reason=price.flag_reason,
            **_dws_terms(price.tier, config),
        )


def _dws_terms(tier: str | None, config: kit.SourceConfig) -> dict[str, Any]:
    """Return the maximum run time and billing increment of one of the scheduler's tiers."""
    return dict(config.settings["dws"][tier]) if tier in DWS_TIERS else {}


def _components(text: str) -> dict[str, float]:
    """Return the amounts in "GPUs: 1/8 vCPUs: 6 Memory: 22GiB". Raises UnreadableError if GPUs are absent."""
    found: dict[str, float] = {}
    for name, amount, share in re.findall(
        r"(GPUs?|vCPUs?|Memory|SSD) ?: ?([\d,.]{1,12}) ?(?:/ ?(\d{1,3})|(?:[GT]i?B)?)(?![\w,.]*\w| ?/)", text
    ):
        key = name.lower() if name in ("Memory", "SSD") else name.lower().rstrip("s") + "s"
        found[key] = float(kit.number(amount)) / (int(share) if share else 1)
    if found.get("gpus", 0) <= 0:
        raise kit.UnreadableError(f"{text!r} does not say how many GPUs")
    return found


# --- the billing catalogue ----------------------------------------------------------------------------------


_Rates = dict[tuple[str, str, str], dict[Decimal, kit.JsonObject]]
"""Prices in USD per hour (local SSD: per GiB-month), each with its SKU, keyed by part, usage type and region.
Several prices under one key contradict each other."""


def _read_catalog(answers: list[kit.Answer], audit: kit.FieldAudit) -> kit.Rows:
    settings = audit.config.settings
    families = settings["families"].values()
    # A GPU part may have several names: its rates are stored under the first.
    gpu_parts = {part: family["gpu"][0] for family in families for part in family["gpu"]}
    other_parts = {family[name] for family in families for name in ("core", "ram") if name in family}
    other_parts.add(settings["local_ssd"])
    rates: _Rates = {}
    skus = [sku for answer in answers for sku in audit.items(answer, "skus")]
    if not any(map(_is_gpu, skus)):
        raise answers[0].changed("the catalogue has no GPU")
    for sku in skus:
        part, usage = _component(str(sku.peek("description"))), _usage(sku)
        if usage in KIND_BY_USAGE and part in (gpu_parts if _is_gpu(sku) else other_parts):
            try:
                price = _unit_price(sku.get("pricingInfo"))
            except kit.RowError as error:
                yield sku.reject(error, sku.name("description"))
                continue
            regions = sku.get("serviceRegions")
            for region in regions if isinstance(regions, list) else []:
                prices = rates.setdefault((gpu_parts.get(part, part), usage, str(region)), {})
                prices.setdefault(price, sku)
        elif _is_gpu(sku):
            yield _unused_gpu(sku, usage)
    for name, amounts in settings["machines"].items():
        yield from _machines(name, amounts, settings["families"][name.rsplit("-", 1)[0]], rates, audit.config)


def _is_gpu(sku: kit.JsonObject) -> bool:
    return bool(sku.peek("category", "resourceGroup") == "GPU")


def _unused_gpu(sku: kit.JsonObject, usage: str) -> kit.Reject:
    description = sku.name("description")
    if usage not in KIND_BY_USAGE or re.search("Commitment|Reserved|Sole Tenancy", description):
        error = kit.RowError(kit.RejectReason.OTHER_PRICE_KIND, "none of on-demand, flex-start and spot")
    else:
        detail = "the price of the GPU alone is not a machine's price"
        error = kit.RowError(kit.RejectReason.INCOMPLETE_PRICE, detail)
    return sku.reject(error, description)


def _usage(sku: kit.JsonObject) -> str:
    """Return a part's usage type in the catalogue, or the scheduler's tier named in its description."""
    description = kit.clean_text(str(sku.peek("description")))
    dws = next((tier for tier, words in _DWS_USAGE.items() if words.search(description)), None)
    return dws or str(sku.peek("category", "usageType"))


def _machines(
    name: str, amounts: list[int], family: Mapping[str, Any], rates: _Rates, config: kit.SourceConfig
) -> kit.Rows:
    """Yield a machine type for every region and usage type in which the catalogue prices all its parts."""
    gpus, vcpus, ram_gib, local_ssd_gib = amounts
    for part, usage, region in sorted(rates):
        if part != family["gpu"][0] or usage not in family.get("usage_types", KIND_BY_USAGE):
            continue
        sku = next(iter(rates[part, usage, region].values()))
        gpu, core, ram, ssd = (
            _rate(rates, each, usage, region)
            for each in (part, family.get("core", ""), family.get("ram", ""), config.settings["local_ssd"])
        )
        # The GPU price of a "whole" family includes CPU, memory and disk.
        is_whole = family.get("whole", False)
        if gpu is None or not (is_whole or (core and ram)):
            detail = "not every part has exactly one price in the catalogue"
            error = kit.RowError(kit.RejectReason.INCOMPLETE_PRICE, detail)
            yield sku.reject(error, f"{name} in {region}, {usage}")
            continue
        total, flag = gpus * gpu, None
        if core and ram:
            total += vcpus * core + ram_gib * ram
        if local_ssd_gib and not is_whole:
            flag = None if ssd else kit.FlagReason.LOCAL_SSD_NOT_PRICED
            total += local_ssd_gib * (ssd or 0) / kit.HOURS_PER_MONTH
        yield sku.listing(
            name,
            gpus,
            total,
            label_kind="instance_type",
            instance_type=name,
            price_kind=KIND_BY_USAGE[usage],
            context={"gpu_name": part},
            region=region,
            vcpus=vcpus,
            ram_gib=ram_gib,
            local_disk_gb=kit.gb_from_gib(local_ssd_gib) or None,
            flag_reason=flag,
            tier=usage if usage in DWS_TIERS else None,
            **_dws_terms(usage, config),
        )


def _rate(rates: _Rates, part: str, usage: str, region: str) -> Decimal | None:
    """Return the price of a part; None if the part has no price, or several different prices."""
    found = rates.get((part, usage, region), {})
    return next(iter(found)) if len(found) == 1 else None


def _component(description: str) -> str:
    """Return the part named in a SKU's description, without the words for its region and usage."""
    return _COMPONENT_SUFFIX.sub("", _COMPONENT_PREFIX.sub("", kit.clean_text(description)), count=1)


def _unit_price(pricing: Any) -> Decimal:
    """Return the price in USD per usage unit, from ``units`` and ``nanos`` (1e-9). Raises RowError."""
    try:
        price = pricing[0]["pricingExpression"]["tieredRates"][-1]["unitPrice"]
        currency, units, nanos = price["currencyCode"], price.get("units", 0), price.get("nanos", 0)
        amount = kit.number(units) + kit.number(nanos).scaleb(-9)
    except (KeyError, IndexError, TypeError, kit.UnreadableError) as error:
        raise kit.RowError(kit.RejectReason.UNREADABLE_PRICE, f"no unit price ({error!r})") from error
    if currency != "USD" or amount <= 0:
        raise kit.RowError(kit.RejectReason.UNREADABLE_PRICE, f"the price is {amount} {currency}")
    return amount
