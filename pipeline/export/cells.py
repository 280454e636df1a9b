"""Writes values for CSV: text that no spreadsheet runs as a formula, plain decimals, and lists as JSON."""

import re
from typing import Any

_BLANK = (
    r"\x00-\x20\x7f-\xa0\xad"
    "\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
"""Spaces, control and invisible characters, listed because ``\\s`` is ASCII in DuckDB but not in Python."""

FORMULA_START = rf"^(?:[{_BLANK}]*[=+\-@＝＋－＠]|[\t\r\n])"
"""Start of a cell that a spreadsheet would run as a formula, even in full-width characters or after spaces;
such text gets an apostrophe in front. The pattern means the same in Python and DuckDB."""

BYTE_ORDER_MARK = "\ufeff"
"""Starts a CSV file, without which Excel does not read it as UTF-8."""

DATETIME = "%Y-%m-%dT%H:%M:%S.%fZ"
"""The datetime format of a data package; the connection's time zone is UTC."""


def safe_text(value: Any) -> Any:
    """Return a value for CSV, with an apostrophe in front if a spreadsheet would run it as a formula."""
    return f"'{value}" if isinstance(value, str) and re.match(FORMULA_START, value) else value


def csv_cell(name: str, kind: str) -> str:
    """Return the SQL expression that writes a column to CSV. ``kind`` is the DuckDB type."""
    cell = f'"{name}"'
    if kind == "VARCHAR":
        quote = f"CASE WHEN regexp_matches({cell}, '{FORMULA_START}') THEN '''' ELSE '' END"
        return f"{quote} || {cell}"
    if kind in ("DOUBLE", "FLOAT"):
        return _plain_decimal(cell)
    return f"to_json({cell})::VARCHAR" if kind.endswith("[]") else cell


def _plain_decimal(cell: str) -> str:
    """Return SQL that writes 1e-07 as 0.0000001, since some spreadsheets take 1e-07 for text. Up to 26 digits
    are written after the decimal point, and whole numbers beyond 1e12 are written in full."""
    text = f"{cell}::VARCHAR"
    plain = f"rtrim(rtrim(format('{{:.26f}}', {cell}), '0'), '.')"
    return f"CASE WHEN {text} LIKE '%e%' THEN {plain} ELSE {text} END"
