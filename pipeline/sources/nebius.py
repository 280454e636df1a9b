"""Nebius: the GPU tables of the price page, per GPU-hour.

The page has each table as visible rows and again as escaped JSON in a script. Both are read and merged; a
price on which they disagree is a reject. Columns come and go, so each one's header says what kind of price it
is and from which day it is valid.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from html import unescape
from itertools import islice
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, SourceChangedError, read_json
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.parsing.announced import Validity, is_superseded, validity
from pipeline.parsing.html import exactly_one, named, page, text_of, texts_of, with_class
from pipeline.parsing.prices import RowError, agreed, cell_price, optional_number
from pipeline.parsing.tables import PriceColumn, column, columns, prices_in_unknown_columns
from pipeline.parsing.terms import price_kind, term_days
from pipeline.parsing.text import UnreadableError, clean_text, is_starting_price

BLOCK_TYPE = "highlight-table-block"
GPU_HOUR = r"GPU ?(?:-|/|per)? ?(?:hour|hr|h)\b"
MAX_BLOCK_CHARACTERS = 300_000
MAX_BLOCKS = 200

_EMBEDDED = re.compile(rf'\{{(\\{{0,7}})"type\1":\1"{BLOCK_TYPE}\1"')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class _Block:
    title: str
    rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class _Machine:
    """What identifies a price, equal in both of the page's copies of a table."""

    label: str
    vcpus: str
    ram: str
    kind: PriceKind
    term_days: int | None
    effective_from: date | None


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """GPU rows as one listing per price column. CPU, storage and network tables are not read."""
    for answer in answers:
        prices: dict[_Machine, dict[str, str]] = {}
        for block in _blocks(answer):
            _collect(block, answer, prices)
        if not prices:
            raise SourceChangedError(f"{answer.url}: no GPU table with a price per GPU-hour")
        for machine, stated in prices.items():
            yield _row(machine, stated, prices, answer)


def _collect(block: _Block, answer: Answer, prices: dict[_Machine, dict[str, str]]) -> None:
    """Add a block's cells to ``prices``: by machine, each price text of the page and its header."""
    headers, *rows = block.rows
    if not columns(headers, GPU_HOUR):
        if re.search(r"\bGPU\b", block.title) and columns(headers, r"price|hour|on-demand|spot"):
            raise SourceChangedError(f"{answer.url}: {block.title!r} has no GPU-hour column: {headers}")
        return
    label_at = column(headers, r"^(?:item|gpu|model|name|gpu model|instance)$", answer)
    vcpus_at, ram_at = columns(headers, r"^v?CPUs?$"), columns(headers, r"^(?:RAM|memory)\b")
    price_columns = _price_columns(headers, block.title, answer)
    known = {label_at, *vcpus_at, *ram_at, *(price.at for price in price_columns)}
    for row in rows:
        if len(row) != len(headers):
            raise SourceChangedError(
                f"{answer.url}: a row of {len(row)} cells under {len(headers)} headers: {row}"
            )
        if list(prices_in_unknown_columns(headers, row, known, answer)):
            raise SourceChangedError(f"{answer.url}: an unknown column has prices: {headers}")
        for price in price_columns:
            machine = _Machine(
                label=row[label_at],
                vcpus=row[vcpus_at[0]] if vcpus_at else "",
                ram=row[ram_at[0]] if ram_at else "",
                kind=price.kind,
                term_days=price.term_days,
                effective_from=price.effective_from,
            )
            prices.setdefault(machine, {}).setdefault(row[price.at], price.header)


def _price_columns(headers: list[str], title: str, answer: Answer) -> list[PriceColumn]:
    """The columns per GPU-hour. A header without a kind has the title's, or is on-demand like the others."""
    found = columns(headers, GPU_HOUR)
    own_kinds = {kind for at in found if (kind := price_kind(headers[at]))}
    general = price_kind(title) or ("on_demand" if own_kinds <= {"on_demand"} else None)
    prices = []
    for at in found:
        kind = price_kind(headers[at]) or general
        if kind is None:
            raise SourceChangedError(
                f"{answer.url}: {headers[at]!r} does not say which of {own_kinds} it prices"
            )
        term = term_days(headers[at]) if kind == "reserved" else None
        try:
            first_day = validity(headers[at], answer).first_day
        except UnreadableError as error:
            raise SourceChangedError(f"{answer.url}: {error}") from error
        prices.append(PriceColumn(at, headers[at], kind, term, effective_from=first_day))
    return prices


def _row(
    machine: _Machine,
    stated: dict[str, str],
    prices: dict[_Machine, dict[str, str]],
    answer: Answer,
) -> Listing | Reject:
    raw = {
        "label": machine.label,
        "kind": machine.kind,
        "prices": list(stated),
        "columns": list(stated.values()),
    }
    price, header = next(iter(stated.items()))
    try:
        agreed(map(_price_or_reason, stated))
        amount, currency = cell_price(price)
    except RowError as error:
        return Reject(error.reason, f"{machine.label}, {header}: {error}", raw, answer)
    return Listing.per_gpu_hour(
        machine.label,
        machine.kind,
        amount,
        currency,
        answer,
        term_days=machine.term_days,
        vcpus=optional_number(machine.vcpus),
        ram_gib=optional_number(machine.ram),
        effective_from=machine.effective_from,
        flag_reason=_flag(machine, price, header, prices, answer),
    )


def _price_or_reason(price: str) -> object:
    """The content of a price text: two spellings of one price are not in conflict."""
    try:
        return cell_price(price)
    except RowError as error:
        return error.reason


def _flag(
    machine: _Machine,
    price: str,
    header: str,
    prices: dict[_Machine, dict[str, str]],
    answer: Answer,
) -> FlagReason | None:
    # A footnote on the page: spot prices change every 15 minutes, the list shows the lowest.
    if is_starting_price(price) and re.search(r"\bspot\b", header, re.IGNORECASE):
        return FlagReason.SPOT_PRICE_FLOOR
    same = (machine.label, machine.vcpus, machine.kind, machine.term_days)
    others = [
        Validity(other.effective_from)
        for other in prices
        if (other.label, other.vcpus, other.kind, other.term_days) == same
    ]
    replaced = is_superseded(Validity(machine.effective_from), others, answer)
    return FlagReason.SUPERSEDED if replaced else None


def _blocks(answer: Answer) -> list[_Block]:
    """Every table of the page, from the visible rows and from the embedded JSON."""
    text = answer.text().strip()
    if answer.is_json:
        # A piece of the page's script begins like JSON but is not: its quotes are escaped.
        with suppress(ValueError):
            return _json_blocks(read_json(text, answer.url))
    return [*_embedded_blocks(text, answer), *_visible_blocks(answer)]


def _json_blocks(value: Any) -> list[_Block]:
    """Blocks anywhere in decoded JSON; a bare list of rows is one block without a title."""
    if isinstance(value, dict):
        table = value.get("table")
        if isinstance(table, dict) and _is_grid(table.get("content")):
            return [_Block(clean_text(str(value.get("title", ""))), _grid(table["content"]))]
        if _is_grid(value.get("content")):
            return [_Block("", _grid(value["content"]))]
        return [block for part in value.values() for block in _json_blocks(part)]
    if isinstance(value, list):
        if _is_grid(value):
            return [_Block("", _grid(value))]
        return [block for part in value for block in _json_blocks(part)]
    return []


def _is_grid(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(row, list) and row and all(isinstance(cell, str) for cell in row) for row in value)
    )


def _grid(rows: list[list[str]]) -> list[list[str]]:
    return [[clean_text(unescape(cell)) for cell in row] for row in rows]


def _embedded_blocks(text: str, answer: Answer) -> list[_Block]:
    """Blocks inside script strings, however often they are escaped."""
    blocks: list[_Block] = []
    for found in islice(_EMBEDDED.finditer(text), MAX_BLOCKS):
        chunk = text[found.start() : found.start() + MAX_BLOCK_CHARACTERS]
        while chunk.startswith("{\\"):
            chunk = _ESCAPE.sub(lambda e: _unescaped(e[1]), chunk)
        try:
            value = read_json(chunk, answer.url, beginning=True)
        except ValueError as error:
            raise SourceChangedError(f"{answer.url}: a {BLOCK_TYPE} is incomplete JSON ({error})") from error
        blocks += _json_blocks(value)
    return blocks


def _unescaped(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _PLAIN.get(escape, escape)


def _visible_blocks(answer: Answer) -> list[_Block]:
    blocks = []
    for root in with_class(page(answer), "pc-highlight-table-block__root"):
        rows = [
            texts_of(with_class(row, "pc-highlight-table-block__cell"))
            for row in with_class(root, "pc-highlight-table-block__row")
        ]
        if rows:
            title = exactly_one(named(root, "h1", "h2", "h3"), "title of a price table", answer)
            blocks.append(_Block(text_of(title), rows))
    return blocks
