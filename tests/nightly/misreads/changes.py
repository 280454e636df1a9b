"""Changes of what a source shows, or of what its reader makes of it, written without sight of the gates.

changes.jsonl changes what is read, and not the page. A line names the source, and gives its listings by
their place among the sample page's listings: ``changed`` has the fields that differ; ``rows`` has every
listing, with the place that it is like. ``marks`` are currencies in which the page shows its amounts,
``says`` is what it says of its age, ``headers`` are those of the answer, and ``elsewhere`` has what other
sources truly show on the same days.

pages.jsonl changes the page, which is then read: ``edits`` replace a text, or multiply the numbers that a
pattern finds, in the answers whose address contains ``url``; ``why`` says what the source did.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.capture.index import sha256_of
from pipeline.contracts.listing import Answer, Row
from tests.nightly.misreads.misreads import Edit, Misread, listings_of

SIGNS = {"EUR": "€", "GBP": "£", "INR": "₹"}

_READ: Mapping[str, Callable[[Any], Any]] = {
    "native_price": Decimal,
    "gpu_counts": tuple,
    "effective_from": date.fromisoformat,
}


@dataclass(frozen=True)
class Change(Misread):
    """A misread or a true change, also with what it changes in the answer's headers and at other sources."""

    set: str = ""
    good: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Mapping[str, Edit] = field(default_factory=dict)


@dataclass(frozen=True)
class PageChange(Change):
    """A change of the answers themselves, which the reader then reads: each edit replaces a text, or
    multiplies each number that a pattern finds."""

    edits: Sequence[Mapping[str, Any]] = ()

    def answer(self, answer: Answer) -> Answer:
        """The answer as the source gives it after the change."""
        text = answer.text()
        for edit in self.edits:
            if edit.get("url", "") not in answer.url:
                continue
            if "old" in edit:
                text = text.replace(edit["old"], edit["new"])
            else:
                text = re.sub(edit["pattern"], partial(_multiplied, edit), text)
        body = text.encode()
        return replace(answer, body=body, sha256=sha256_of(body))


def _multiplied(edit: Mapping[str, Any], match: re.Match[str]) -> str:
    number = Decimal(match[1].replace(",", "")) * Decimal(str(edit["factor"]))
    start, end = (place - match.start() for place in match.span(1))
    return f"{match[0][:start]}{number:.{edit['digits']}f}{match[0][end:]}"


def page_changes() -> dict[str, PageChange]:
    """Return the changes of answers by name."""
    lines = Path(__file__).with_name("pages.jsonl").read_text(encoding="utf-8").splitlines()
    return {
        line["name"]: PageChange(
            source=line["source"], listings=list, set=line["set"], good=line["good"], edits=line["edits"]
        )
        for line in map(json.loads, lines)
    }


def _edited(encoded: Mapping[str, Any], rows: Sequence[Row]) -> list[Row]:
    listings = listings_of(rows)
    given = encoded.get("rows") or [
        [place, encoded["changed"].get(f"{place}", {})] for place in range(len(listings))
    ]
    return [replace(listings[place], **_values(fields)) for place, fields in given]


def _values(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value if value is None else _READ.get(name, lambda same: same)(value)
        for name, value in fields.items()
    }


def _page(marks: Sequence[str], says: Sequence[str], body: bytes) -> bytes:
    for currency in marks:
        body = body.replace(b"$", SIGNS[currency].encode()).replace(b"USD", currency.encode())
    return body + " ".join(says).encode()


def changes() -> dict[str, Change]:
    """Return the changes by name."""
    lines = Path(__file__).with_name("changes.jsonl").read_text(encoding="utf-8").splitlines()
    return {
        line["name"]: Change(
            source=line["source"],
            listings=partial(_edited, line),
            page=partial(_page, line.get("marks", ()), line.get("says", ())),
            set=line["set"],
            good=line["good"],
            headers=line.get("headers", {}),
            elsewhere={name: partial(_edited, of) for name, of in line.get("elsewhere", {}).items()},
        )
        for line in map(json.loads, lines)
    }
