"""Massed Compute: machines on the price page, priced per machine-hour, from the data embedded in the page.

Every machine occurs twice, as a card for small screens and as a table row, under a key such as ``"H100
(80GB)-mobile-x 2-1"``, made up of the GPU, the number of GPUs, and the position in the group. A cell may come
later in the stream, on a separate line among other rows, so a row is read only to the end of its line.
"""

import re
from collections.abc import Iterator, Sequence

from pipeline.sources import kit

MAX_ROW_CHARACTERS = 6_000

_KEY = re.compile(
    r'"(?P<label>[^"\\\n]{1,60}?)(?P<card>-mobile)?-x (?P<count>\d{1,3})-(?P<place>\d{1,3})",\{'
)
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_COUNT = re.compile(r'"×","([^"]*)"')
_CPUS = re.compile(r'"vCPU"(?:(?!"RAM")[^\n]){0,300}?"(\d{1,4})"')
_MEMORY = re.compile(r'"(\d{1,5}) GB"')
_HOUR = re.compile(r"/ ?(?:hr|hour)")


@kit.reader("the page's data has no row of a GPU")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per machine."""
    text = kit.flight_text(answer)
    keys = list(_KEY.finditer(text))
    machines: dict[tuple[str, str, str], list[str]] = {}
    for at, key in enumerate(keys):
        following = keys[at + 1].start() if at + 1 < len(keys) else len(text)
        end = min(following, key.end() + MAX_ROW_CHARACTERS)
        row = text[key.end() : end].partition("\n")[0]
        machines.setdefault((key["label"].strip(), key["count"], key["place"]), []).append(row)
    for (label, count, _), rows in machines.items():
        yield _read_machine(label, count, rows, answer, audit.config)


def _read_machine(
    label: str, count: str, rows: Sequence[str], answer: kit.Answer, config: kit.SourceConfig
) -> kit.Listing | kit.Reject:
    """Return a machine from its copies in the page; the price in one copy may come later in the stream."""
    name = f"{count} x {label}"
    try:
        gpus = kit.gpu_count(kit.agreed([count, *(found for row in rows for found in _COUNT.findall(row))]))
        prices = [price for row in rows for price in _prices(row, config.currency)]
        if not prices:
            raise kit.RowError(kit.RejectReason.MISSING_FIELD, "its price is elsewhere in the page's data")
        price = kit.agreed(prices)
    except kit.RowError as error:
        return error.reject(name, [row[:300] for row in rows], answer)
    return price.listing(label, gpus, answer, vcpus=_common(_CPUS, rows), ram_gib=_common(_MEMORY, rows))


def _prices(row: str, currency: str) -> Iterator[kit.CellPrice]:
    """Yield the prices in one copy, with their unit; ``$$`` (an escaped dollar sign) marks a price."""
    texts = _STRING.findall(row)
    for at, text in enumerate(texts):
        if text.startswith("$$"):
            units = [unit for unit in texts[at + 1 :] if _HOUR.fullmatch(unit)]
            if not units:
                raise kit.RowError(kit.RejectReason.UNKNOWN_UNIT, f"{text[1:]!r} has no known unit")
            yield kit.cell_price(text[1:] + units[0].replace(" ", ""), currencies=[currency])
        elif text in ("Request", "Sold out", "Contact sales"):
            raise kit.RowError(kit.RejectReason.NOT_OFFERED, f"no price is given: {text!r}")


def _common(pattern: re.Pattern[str], rows: Sequence[str]) -> float | None:
    """Return a number that no price depends on, if the copies that contain it agree; otherwise None."""
    found = {match for row in rows for match in pattern.findall(row)}
    return kit.optional_number(found.pop()) if len(found) == 1 else None
