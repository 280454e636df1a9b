"""The joins between the published tables, and drawings of them, which the site shows."""

from collections import Counter
from functools import cache
from typing import NamedTuple

from pipeline.catalog.schema import PURPOSES, read_table, table_names

LINE, HEAD = 24, 26
"""Height of a row and of a heading in a drawing, in px."""

LEFT, RIGHT, WIDTH = 184, 206, 382
"""Right edge of the table, left edge of the others, and width of a drawing, in px: it fits a phone."""


class Join(NamedTuple):
    """``column`` of ``table`` is a key into the table ``into``."""

    table: str
    column: str
    into: str


@cache
def _all_joins() -> list[Join]:
    return [
        Join(name, column.name, column.key_into)
        for name in table_names()
        for column in read_table(name).described()
        if column.key_into
    ]


def joins(table: str) -> list[Join]:
    """Return the joins of a table: first those by its own columns, then those from other tables."""
    own = [join for join in _all_joins() if join.table == table]
    return own + [join for join in _all_joins() if join.into == table and join.table != table]


def drawing(table: str) -> str:
    """Return an SVG of a table's joins: its columns on the left, and the joined tables on the right."""
    found = joins(table)
    own = [join for join in found if join.table == table]
    others = found[len(own) :]
    height = HEAD + LINE * len(found)
    parts = [_box(1, 1, LEFT, height), _text(8, HEAD - 9, table, "head")]
    for row, join in enumerate(found):
        middle = HEAD + LINE * row + LINE / 2
        other = join.into if join.table == table else join.table
        parts += [_box(RIGHT, middle - 10, WIDTH - 1, middle + 10), _linked(RIGHT + 6, middle + 4, other)]
        if join.table == table:
            parts += [_text(8, middle + 4, join.column), _arrow(LEFT, middle, RIGHT - 1)]
        else:
            parts.append(_arrow(RIGHT, middle, LEFT + 1))
    if others:
        key = (*read_table(table).key, others[0].column)[0]
        parts.append(_text(8, HEAD + LINE * len(own) + LINE / 2 + 4, f"{key} (key)"))
    return _svg(f"Joins of {table}", height + 2, parts)


def overview() -> str:
    """Return an SVG with a row for each table that joins others, a column for each table that several join,
    and a dot where the row's table has a key into the column's."""
    uses = Counter(join.into for join in _all_joins())
    hubs = [name for name, count in uses.most_common() if count > 1]
    joined = {(join.table, join.into) for join in _all_joins()}
    top, step = 112, (WIDTH - LEFT - 14) / len(hubs)
    across = {hub: LEFT + 12 + step * number for number, hub in enumerate(hubs)}
    parts = [_turned(x, top, hub) for hub, x in across.items()]
    y = float(top)
    for purpose in PURPOSES:
        rows = [n for n in table_names() if read_table(n).purpose == purpose]
        rows = [name for name in rows if any((name, hub) in joined for hub in hubs) or name in hubs]
        y += 8 if rows else 0
        for name in rows:
            y += 18
            parts += [_rule(y + 5), _linked(1, y, name, "tables/")]
            parts += [_dot(x, y - 4) for hub, x in across.items() if (name, hub) in joined]
            parts += [_ring(across[name], y - 4)] if name in hubs else []
    return _svg("Joins of all tables", y + 10, parts)


def _svg(label: str, height: float, parts: list[str]) -> str:
    box = f'viewBox="0 0 {WIDTH} {height:g}"'
    lines = "\n".join(parts)
    return f'<div class="joins">\n<svg {box} role="group" aria-label="{label}">\n{lines}\n</svg>\n</div>\n'


def _box(left: float, top: float, right: float, bottom: float) -> str:
    size = f'width="{right - left:g}" height="{bottom - top:g}"'
    return f'<rect x="{left:g}" y="{top:g}" {size} rx="3"/>'


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{words}</text>'


def _linked(x: float, y: float, table: str, folder: str = "") -> str:
    return f'<a href="{folder}{table}.html">{_text(x, y, table)}</a>'


def _turned(x: float, y: float, table: str) -> str:
    turned = f'transform="translate({x + 4:g} {y:g}) rotate(-90)"'
    return f"<g {turned}>{_linked(0, 0, table, 'tables/')}</g>"


def _arrow(start: float, y: float, end: float) -> str:
    back = -5 if end > start else 5
    return f'<path d="M{start:g} {y:g}H{end:g}m{back} -3.5l{-back} 3.5l{back} 3.5"/>'


def _rule(y: float) -> str:
    return f'<path class="rule" d="M1 {y:g}H{WIDTH - 1}"/>'


def _dot(x: float, y: float) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="4"/>'


def _ring(x: float, y: float) -> str:
    return f'<circle class="key" cx="{x:g}" cy="{y:g}" r="4"/>'
