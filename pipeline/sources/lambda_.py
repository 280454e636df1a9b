"""Lambda: the pricing page's two kinds of tables, and, with a key, the API's instance types.

*1-Click Clusters* tables (with DURATION and GPU COUNT columns) list reserved clusters of 16 or more GPUs.
*Instances* tables (under a tab, such as 8x, that gives the GPU count) list on-demand machines. Both kinds
give prices per GPU-hour, before tax. The API lists the same instances, in cents per instance-hour and with
their availability; if the API answered, the pages' instances are skipped. The API's instance types without a
GPU are skipped, too. The page /instances repeats the instances.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from bs4 import Tag

from pipeline.sources import kit

_PRICE = r"(?:\bprice|\$) ?(?:/|per) ?gpu ?(?:/|per|-) ?(?:hr|hour)\b"
_DURATION = r"(?:duration|term|commitment|reservation)\b"
_GPU_COUNT = r"(?:gpu count|gpus|number of gpus|# of gpus)$"
_VRAM = r"(?:vram|gpu memory|memory ?/ ?gpu)\b"
_VCPUS = r"v?cpus\b"
_RAM = r"(?:system )?ram\b"
_DISK = r"(?:local )?storage\b"

_TAB = re.compile(r"(\d{1,3})\s?[x×]", re.IGNORECASE)
_SIZE = re.compile(r"(\d{1,3}(?:,\d{3})+|\d{1,6})(\.\d{1,6})? ?([GT]i?B)\b", re.IGNORECASE)
_BYTES = {"gb": 10**9, "gib": 2**30, "tb": 10**12, "tib": 2**40}
_DAY = r"\d{4}-\d{2}-\d{2}|[a-z]{3,9} \d{1,2}, \d{4}|\d{1,2} [a-z]{3,9} \d{4}"
_EFFECTIVE = re.compile(rf"(?<!cost-)\beffect(?:ive)?\b[^.;]{{0,40}}?\b({_DAY})\b", re.IGNORECASE)


@kit.joint_reader()
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """Every price on the pages and in the API, except rows that repeat those of an earlier page.

    A page with unknown rows, columns or dates is rejected. Raises SourceChangedError if no page can be read.
    """
    by_api = [answer for answer in answers if answer.is_json]
    pages, refused = kit.each_answer(
        [answer for answer in answers if not answer.is_json], lambda page: list(_read_page(page, audit))
    )
    earlier: list[kit.Listing] = []
    for _, rows in pages:
        listings = [row for row in rows if isinstance(row, kit.Listing)]
        repeated = [row for row in listings if (by_api and row.tier is None) or _is_among(row, earlier)]
        yield from (row for row in rows if row not in repeated)
        earlier += listings
    yield from refused
    for answer in by_api:
        yield from _read_api(answer, audit)


def _is_among(row: kit.Listing, others: Sequence[kit.Listing]) -> bool:
    return any(replace(row, answer=other.answer) == other for other in others)


def _read_api(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    body = answer.json()
    data = body.get("data", body) if isinstance(body, dict) else body
    found = list(data.values()) if isinstance(data, dict) else data if isinstance(data, list) else []
    types = [audit.item(raw if isinstance(raw, dict) else {"instance_type": raw}, answer) for raw in found]
    if not any(isinstance(offered.peek("instance_type"), dict) for offered in types):
        raise answer.changed("data has no instance types by name")
    for offered in types:
        name = str(offered.peek("instance_type", "name"))
        try:
            if offered.peek("instance_type", "specs", "gpus") != 0:
                yield _api_listing(offered)
        except kit.RowError as error:
            yield offered.reject(error, name)


def _api_listing(offered: kit.JsonObject) -> kit.Listing:
    if not isinstance(offered.peek("instance_type"), dict):
        raise kit.RowError(kit.RejectReason.UNREADABLE_ROW, "not an instance type")
    instance, regions = offered.object("instance_type"), offered.get("regions_with_capacity_available")
    specs, described = instance.object("specs"), instance.optional_text("gpu_description")
    if "gpus" not in specs:
        raise kit.RowError(kit.RejectReason.MISSING_FIELD, "without specs.gpus")
    name, storage_gib = instance.text("name"), specs.optional_number("storage_gib")
    return offered.listing(
        name,
        specs.optional_number("gpus"),
        instance.price("price_cents_per_hour") / 100,
        instance_type=name,
        label_kind="instance_type",
        context=kit.known(gpu_name=described),
        available=bool(regions) if isinstance(regions, list) else None,
        vcpus=specs.optional_number("vcpus"),
        ram_gib=specs.optional_number("memory_gib"),
        local_disk_gb=kit.gb_from_gib(storage_gib) if storage_gib else None,
    )


def _read_page(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    tree = kit.page(answer)
    rows = [row for row in kit.named(tree, "tr") if row.has_attr("data-plan")]
    if not rows:
        raise answer.changed("no pricing row (tr with data-plan) on the page")
    announced = _effective_dates(kit.text_of(tree), answer)
    tabs = _tabs(tree)
    for row in rows:
        cells = _cells(row, answer)
        audit.columns(cells)
        yield from _read_row(row, cells, _tab_count(row, tabs), announced, answer, audit.config)


def _read_row(
    row: Tag,
    cells: Mapping[str, str],
    tab: int | None,
    announced: list[date],
    answer: kit.Answer,
    config: kit.SourceConfig,
) -> kit.Rows:
    of_cluster = [_named(cells, pattern) is not None for pattern in (_DURATION, _GPU_COUNT)]
    in_cluster, in_instances = all(of_cluster), not any(of_cluster) and tab is not None
    prices = [
        kit.PriceColumn(at, label, "on_demand")
        for at, label in enumerate(cells)
        if re.search(_PRICE, label, re.IGNORECASE)
    ]
    if not prices or not (in_cluster or in_instances):
        raise answer.changed(f"a pricing row has unknown columns: {list(cells)}")
    prices = kit.with_validity(prices, answer)
    kit.require_on_demand(prices, list(cells), answer)
    has_dates = any(kit.validity(price.header, answer) != kit.Validity() for price in prices)
    announced_from = max(announced, default=None)
    for price in prices:
        try:
            listing = _listing(row, cells, price.header, tab if in_instances else None, answer, config)
        except kit.RowError as error:
            yield error.reject(str(row["data-plan"]), dict(cells), answer)
            continue
        effective_from, flag = announced_from, listing.flag_reason
        if has_dates:
            effective_from, flag = price.effective_from, price.flag_reason or flag
        elif len(announced) > 1:
            flag = kit.FlagReason.SEVERAL_EFFECTIVE_DATES
        yield replace(listing, effective_from=effective_from, flag_reason=flag)


def _cells(row: Tag, answer: kit.Answer) -> dict[str, str]:
    """Return the text of the row's cells, keyed by data-label or, failing that, by the header above."""
    table = row.find_parent("table")
    heads = kit.named(table, "thead") if table else []
    headers = [kit.text_of(th) for head in heads for th in kit.named(head, "th")]
    cells: dict[str, str] = {}
    for at, cell in enumerate(kit.named(row, "th", "td")):
        header = headers[at] if at < len(headers) else f"column {at}"
        label = kit.clean_text(str(cell.get("data-label") or header))
        if label in cells:
            raise answer.changed(f"a pricing row has two columns named {label!r}")
        cells[label] = kit.text_of(cell)
    return cells


def _named(cells: Mapping[str, str], pattern: str) -> str | None:
    found = [text for label, text in cells.items() if re.match(pattern, label, re.IGNORECASE)]
    return found[0] if len(found) == 1 else None


def _tabs(tree: Tag) -> Mapping[str, set[str]]:
    """Return the names of the page's tabs, keyed by the panel that each tab opens."""
    tabs: dict[str, set[str]] = defaultdict(set)
    for tab in tree.find_all(role="tab"):
        tabs[str(tab.get("aria-controls"))].add(kit.text_of(tab))
    return tabs


def _tab_count(row: Tag, tabs: Mapping[str, set[str]]) -> int | None:
    """Return the GPU count in the name of this table's tab ("8x"), if any."""
    panel = row.find_parent(role="tabpanel")
    named = tabs.get(str(panel["id"]), set()) if panel and panel.get("id") else set()
    found = _TAB.fullmatch(next(iter(named))) if len(named) == 1 else None
    return int(found[1]) if found else None


def _listing(
    row: Tag,
    cells: Mapping[str, str],
    price_label: str,
    tab: int | None,
    answer: kit.Answer,
    config: kit.SourceConfig,
) -> kit.Listing:
    price = kit.cell_price(cells[price_label])
    count = tab if tab is not None else kit.gpu_count((_named(cells, _GPU_COUNT) or "").removesuffix("+"))
    days = None if tab is not None else _term_days(_named(cells, _DURATION) or "")
    ram, disk = (_bytes(_named(cells, kind)) for kind in (_RAM, _DISK))
    return price.listing(
        kit.clean_text(str(row["data-plan"])),
        float(count),
        answer,
        # The single-GPU tab lists machines, like the other tabs.
        gpu_counts=(1,) if count == 1 else None,
        price_kind="reserved" if days else "on_demand",
        native_unit="gpu_hour",
        context=kit.known(vram_gb=kit.gigabytes(_named(cells, _VRAM))),
        term_days=days,
        billing_increment_seconds=None if tab is not None else config.settings["cluster_increment_seconds"],
        minimum_seconds=days * 86_400 if days else None,
        min_gpu_count=count if tab is None else None,
        tier=None if tab is not None else "cluster",
        vcpus=kit.optional_number(_named(cells, _VCPUS)),
        ram_gib=ram and ram / 2**30,
        local_disk_gb=disk and disk / 10**9,
    )


def _term_days(text: str) -> int | None:
    """Return the shortest commitment for the price, in days; None for on-demand. Raises RowError."""
    if kit.price_kind(text) == "on_demand":
        return None
    days = kit.term_days(text) if text[:1].isdigit() else None
    if not days:
        raise kit.RowError(kit.RejectReason.UNKNOWN_TERM_LENGTH, f"not a duration: {text!r}")
    return days


def _bytes(text: str | None) -> float | None:
    """Return the size that a cell begins with ("22 TiB SSD"), in bytes; None if there is none."""
    found = _SIZE.match(text or "")
    if found is None:
        return None
    return float(found[1].replace(",", "") + (found[2] or "")) * _BYTES[found[3].lower()]


def _effective_dates(text: str, answer: kit.Answer) -> list[date]:
    """Return the dates that follow "effective" or "take effect" in a text and are after the answer's day."""
    days = (kit.effective_from(kit.date_of(found), answer) for found in _EFFECTIVE.findall(text))
    return sorted({day for day in days if day})
