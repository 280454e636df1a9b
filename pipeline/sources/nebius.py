"""Nebius: the GPU tables on the price page and in the documentation, with prices per GPU-hour.

The price page contains each table as visible rows and again as escaped JSON in a script; the JSON is read.
Columns come and go: each header gives the kind of price and the day from which the price is valid.

The documentation, in Markdown, has a section for each platform, with its region and one table per currency;
the dollar table is read. The documentation gives exact preemptible prices, the price page only "from" prices.
Prices found in both places are read from the documentation, with the CPUs and memory from the price page.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from html import unescape
from itertools import islice
from typing import Any

from pipeline.sources import kit

BLOCK_TYPE = "highlight-table-block"
GPU_HOUR = r"GPU ?(?:-|/|per)? ?(?:hour|hr|h)\b"
MAX_BLOCK_CHARACTERS = 300_000
MAX_BLOCKS = 200

_SECTION = re.compile(r"^#{2,6} ([^\n]{1,200})$", re.MULTILINE)
_PLATFORM = re.compile(r", `?gpu-[a-z0-9-]+`?$")
_DOLLARS = re.compile(r'<Tab title="USD">(.*?)</Tab>', re.DOTALL)
_TABLE_LINE = re.compile(r"^[ \t]*(\|[^\n]*\|)[ \t]*$", re.MULTILINE)
_GPU_HOUR_UNIT = re.compile(r"(?:1|per)? ?GPU ?hour", re.IGNORECASE)
_PART_HOUR = re.compile(r"(?:1|per)? ?(?:v?CPU|GiB|GB)(?: RAM)? ?hour", re.IGNORECASE)
_REGION = re.compile(r"`([a-z]{2}-[a-z]+\d)`")
_MODEL = re.compile(r"\bRTX PRO \d{4}\b|\b[A-Z]{1,2}\d{2,3}S?\b")

_EMBEDDED = re.compile(rf'\{{(\\{{0,7}})"type\1":\1"{BLOCK_TYPE}\1"')
_CUT_ESCAPE = re.compile(r"\\+(?:u[0-9a-fA-F]{0,3})?$")

_Rows = list[list[str]]
"""The text of each cell in a table, headers first."""

_GpuAndKind = tuple[str, kit.PriceKind, int | None]


@kit.joint_reader()
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """One listing per GPU row, price column and, in the documentation, region. CPU, storage and network
    tables are skipped.

    Raises SourceChangedError for a price page with a different structure and, if there is no price page, for
    documentation without a GPU price; otherwise, such documentation becomes a reject.
    """
    pages = [answer for answer in answers if not _is_markdown(answer)]
    exact = [
        row
        for answer in answers
        if _is_markdown(answer)
        for row in _read_documentation(answer, is_alone=not pages)
    ]
    listed = [row for answer in pages for row in _read_page(answer, audit)]
    yield from _merged(listed, exact)


def _read_page(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    tables: list[tuple[str, _Rows]] = []
    for table in _tables(answer):
        if table not in tables:  # the page's data may repeat a table
            tables.append(table)
    rows = [row for title, table in tables for row in _read_table(title, table, answer, audit)]
    if not rows:
        raise answer.changed("no GPU table with a price per GPU-hour")
    yield from rows


def _merged(listed: list[kit.Listing | kit.Reject], exact: list[kit.Listing | kit.Reject]) -> kit.Rows:
    """Yield the rows of both lists, except price-page rows whose GPU and kind also have an exact price in the
    documentation. Today's prices are flagged on both sides if the page and the documentation disagree."""
    of_page, of_documentation = _by_gpu(listed), _by_gpu(exact)
    disputed = {key for key, rows in of_documentation.items() if _disagree(of_page.get(key, []), rows)}
    for row in listed:
        if not isinstance(row, kit.Listing) or _gpu_and_kind(row) not in of_documentation:
            yield row
        elif _gpu_and_kind(row) in disputed:
            yield replace(row, flag_reason=row.flag_reason or kit.FlagReason.CONFLICTING_PRICES)
    for row in exact:
        if isinstance(row, kit.Listing):
            if machines := of_page.get(_gpu_and_kind(row)):
                row = replace(row, vcpus=machines[0].vcpus, ram_gib=machines[0].ram_gib)
            if _gpu_and_kind(row) in disputed:
                row = replace(row, flag_reason=row.flag_reason or kit.FlagReason.CONFLICTING_PRICES)
        yield row


def _by_gpu(rows: list[kit.Listing | kit.Reject]) -> dict[_GpuAndKind, list[kit.Listing]]:
    """Return the listings, keyed by GPU and kind, except those whose price excludes CPU and memory."""
    found: dict[_GpuAndKind, list[kit.Listing]] = {}
    parts_extra = kit.FlagReason.CPU_AND_MEMORY_CHARGED_EXTRA
    for row in rows:
        if isinstance(row, kit.Listing) and row.flag_reason is not parts_extra:
            found.setdefault(_gpu_and_kind(row), []).append(row)
    return found


def _gpu_and_kind(row: kit.Listing) -> _GpuAndKind:
    return _model(row.raw_label), row.price_kind, row.term_days


def _disagree(of_page: list[kit.Listing], of_documentation: list[kit.Listing]) -> bool:
    """True if the price page states a price for today (not a floor) that the documentation lacks."""
    stated = {row.native_price for row in of_documentation if _is_of_today(row)}
    return bool(stated) and any(row.native_price not in stated for row in of_page if _is_of_today(row))


def _is_of_today(row: kit.Listing) -> bool:
    return row.flag_reason is None and (row.effective_from or date.min) <= kit.day_of(row.answer)


def _model(label: str) -> str:
    """Return the GPU in a label: "H100" in "NVIDIA HGX H100" and "NVIDIA H100 NVLink"."""
    found = _MODEL.search(label.upper().replace("®", "").replace("™", ""))
    return found[0] if found else label


def _is_markdown(answer: kit.Answer) -> bool:
    if answer.is_json:
        return False
    text = answer.text()
    return bool(_SECTION.search(text)) and not re.search(r"<html|<body|<div", text[:5_000], re.IGNORECASE)


def _read_documentation(answer: kit.Answer, *, is_alone: bool) -> kit.Rows:
    _, *sections = _SECTION.split(answer.text())
    has_prices = False
    for heading, body in zip(sections[::2], sections[1::2], strict=True):
        title = kit.clean_text(unescape(heading))
        if _PLATFORM.search(title):
            for row in _read_section(title, body, answer):
                has_prices = has_prices or isinstance(row, kit.Listing)
                yield row
    if not has_prices:
        detail = "the documentation has no platform with a price per GPU hour in dollars"
        if is_alone:
            raise answer.changed(detail)
        yield kit.Reject(kit.RejectReason.UNREADABLE_ANSWER, detail, answer.text()[:200], answer)


def _read_section(title: str, body: str, answer: kit.Answer) -> kit.Rows:
    """Yield one platform's prices from its dollar table, for each of its regions."""
    tabs = _DOLLARS.findall(body)
    table = tabs[0] if len(tabs) == 1 else "" if "<Tab" in body else body
    lines = [[_cell(cell) for cell in line.strip("| \t").split("|")] for line in _TABLE_LINE.findall(table)]
    rows = [row for row in lines if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
    regions = _regions(body.split("<Tab")[0])
    # A unit that cannot be read may be that of a CPU or of memory, too.
    has_parts = any(not (_is_header(row) or _GPU_HOUR_UNIT.fullmatch(row[-1])) for row in rows)
    try:
        valid_by_header = {row[0]: kit.validity(row[0], answer) for row in rows if _is_header(row)}
    except kit.UnreadableError as error:
        yield kit.Reject(kit.RejectReason.UNKNOWN_TERMS, f"{title}: {error}", rows, answer)
        return
    valid: kit.Validity | None = None
    for row in rows:
        if _is_header(row):
            valid = valid_by_header[row[0]]
        elif not _PART_HOUR.fullmatch(row[-1]):
            try:
                price = _gpu_hour_price(row, title, valid)
            except kit.RowError as error:
                yield error.reject(title, row, answer)
                continue
            flag = kit.FlagReason.CPU_AND_MEMORY_CHARGED_EXTRA if has_parts else price.flag_reason
            if valid and kit.is_superseded(valid, valid_by_header.values(), answer):
                flag = kit.FlagReason.SUPERSEDED
            for region in regions:
                yield price.listing(
                    title,
                    1,
                    answer,
                    price_kind=kit.price_kind(row[0]) or "on_demand",
                    native_unit="gpu_hour",
                    region=region,
                    effective_from=valid.first_day if valid else None,
                    flag_reason=flag,
                )


def _gpu_hour_price(row: list[str], title: str, valid: kit.Validity | None) -> kit.CellPrice:
    """Return the price per GPU-hour in a row for the title's GPU. Raises RowError for any other row."""
    if valid is None or len(row) != 3 or not _GPU_HOUR_UNIT.fullmatch(row[2]):
        raise kit.RowError(kit.RejectReason.UNREADABLE_ROW, f"not an item, a price and 1 GPU hour: {row}")
    if _model(row[0]) != _model(title):
        raise kit.RowError(kit.RejectReason.UNREADABLE_ROW, f"{row[0]!r} is another GPU")
    return kit.cell_price(row[1], currencies=["USD"])


def _cell(text: str) -> str:
    return kit.clean_text(unescape(text.replace("\\", "").replace("**", "")))


def _is_header(row: list[str]) -> bool:
    return row[0].lower().startswith("item") and [cell.lower() for cell in row[1:]] == ["price", "per"]


def _regions(text: str) -> list[str | None]:
    """Return a platform's regions, or [None] unless a single plain sentence lists them."""
    sentences = [part for part in re.split(r"(?<=[.:])\s", text) if re.search(r"\bregions?\b", part)]
    if len(sentences) != 1 or re.search(r"\b(?:all|every|except|not|private)\b", sentences[0], re.IGNORECASE):
        return [None]
    return list(dict.fromkeys(_REGION.findall(sentences[0]))) or [None]


def _read_table(title: str, table: _Rows, answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    headers, *rows = table
    if not kit.columns(headers, GPU_HOUR):
        is_of_gpus = re.search(r"(?<!non-)(?<!non )\bGPU\b", title, re.IGNORECASE)
        if is_of_gpus and kit.columns(headers, r"price|hour|on-demand|spot"):
            raise answer.changed(f"{title!r} has no GPU-hour column: {headers}")
        return
    audit.columns(headers)
    label_at = kit.column(headers, r"^(?:item|gpu|model|name|gpu model|instance)$", answer)
    vcpus_at, ram_at = kit.columns(headers, r"^v?CPUs?$"), kit.columns(headers, r"^(?:RAM|memory)\b")
    price_columns = _price_columns(headers, title, answer)
    known = {label_at, *vcpus_at, *ram_at, *(price.at for price in price_columns)}
    for row in rows:
        if len(row) != len(headers):
            raise answer.changed(f"a row of {len(row)} cells under {len(headers)} headers: {row}")
        if list(kit.prices_in_unknown_columns(headers, row, known, answer)):
            raise answer.changed(f"an unknown column has prices: {headers}")
        for price in price_columns:
            vcpus, ram = (row[at[0]] if at else "" for at in (vcpus_at, ram_at))
            yield _row(row[label_at], price, row[price.at], vcpus, ram, answer)


def _price_columns(headers: list[str], title: str, answer: kit.Answer) -> list[kit.PriceColumn]:
    """Return the columns with prices per GPU-hour. A header that names no kind gets the title's kind, or
    on-demand if no other header names another kind."""
    found = kit.columns(headers, GPU_HOUR)
    own_kinds = {kind for at in found if (kind := kit.price_kind(headers[at]))}
    general = title if kit.price_kind(title) else "on-demand" if own_kinds <= {"on_demand"} else ""
    named = [
        "" if at not in found else header if kit.price_kind(header) else f"{header} {general}"
        for at, header in enumerate(headers)
    ]
    prices = kit.price_columns(named, answer)
    if len(prices) != len(found):
        raise answer.changed(f"a column of {headers} does not say which of {own_kinds} it has")
    return prices


def _row(
    label: str, column: kit.PriceColumn, cell: str, vcpus: str, ram: str, answer: kit.Answer
) -> kit.Listing | kit.Reject:
    try:
        price = kit.cell_price(cell)
    except kit.RowError as error:
        raw = {"label": label, "column": column.header, "prices": [cell]}
        return error.reject(f"{label}, {column.header}", raw, answer)
    flag = column.flag_reason
    if price.flag_reason and column.kind == "spot":
        # A footnote says that spot prices change every 15 minutes and that the list shows the lowest.
        flag = kit.FlagReason.SPOT_PRICE_FLOOR
    return price.listing(
        label,
        1,
        answer,
        price_kind=column.kind,
        native_unit="gpu_hour",
        term_days=column.term_days,
        vcpus=kit.optional_number(vcpus),
        ram_gib=kit.optional_number(ram),
        effective_from=column.effective_from,
        flag_reason=flag,
    )


def _tables(answer: kit.Answer) -> list[tuple[str, _Rows]]:
    """Return every table in the page's embedded JSON, with its title."""
    text = answer.text().strip()
    if answer.is_json:
        # A piece of the page's script may begin like JSON even though its quotes are escaped.
        with suppress(ValueError):
            return list(_tables_in(kit.read_json(text, answer.url)))
    return list(_embedded_tables(text, answer))


def _tables_in(value: Any, title: str = "") -> Iterator[tuple[str, _Rows]]:
    """Yield every table in decoded JSON, with the title of the nearest enclosing object that has one."""
    if _is_table(value):
        yield title, [[kit.clean_text(unescape(cell)) for cell in row] for row in value]
    elif isinstance(value, dict):
        title = kit.clean_text(str(value.get("title", title)))
        for part in value.values():
            yield from _tables_in(part, title)
    elif isinstance(value, list):
        for part in value:
            yield from _tables_in(part, title)


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(row, list) and row and all(isinstance(cell, str) for cell in row) for row in value)
    )


def _embedded_tables(text: str, answer: kit.Answer) -> Iterator[tuple[str, _Rows]]:
    """Yield the tables inside script strings, which may be escaped several times."""
    for found in islice(_EMBEDDED.finditer(text), MAX_BLOCKS):
        chunk = text[found.start() : found.start() + MAX_BLOCK_CHARACTERS]
        try:
            while chunk.startswith("{\\"):
                chunk = _CUT_ESCAPE.sub("", chunk)
                chunk = kit.read_json(f'"{chunk}"', answer.url, beginning=True)
            value = kit.read_json(chunk, answer.url, beginning=True)
        except ValueError as error:
            raise answer.changed(f"a {BLOCK_TYPE} is incomplete JSON ({error})") from error
        yield from _tables_in(value)
