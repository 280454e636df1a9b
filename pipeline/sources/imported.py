"""Imported: dated prices from many providers, from CSV files that the user passes to ``gpufare import``.

An answer contains a file's header and its rows for one day. docs/how-to/import.md gives the layout.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from pipeline.sources import kit

MAX_CELL_CHARACTERS = 1_000

EARLIEST = date(2010, 1, 1)
"""Earliest plausible day of a price: GPUs were not rented by the hour before that."""

LINE = "line in file"
"""Column that an answer has in addition to its file's columns: the row's line number in the file."""

ALIASES: Mapping[str, tuple[str, ...]] = {
    "day": ("day", "as_of", "date"),
    "gpu_id": ("gpu_id",),
    "gpu": ("gpu", "gpu_label", "raw_label"),
    "provider": ("provider",),
    "price_kind": ("price_kind",),
    "term_days": ("term_days",),
    "price": ("usd_per_gpu_hour", "usd_per_hour", "price_usd_hr"),
    "unit": ("unit",),
    "gpu_count": ("gpu_count", "count"),
    "region": ("region",),
    "country": ("country",),
    "source": ("source", "source_url", "url"),
    "evidence": ("evidence",),
}
"""Accepted names of each column."""

REQUIRED = ("day", "provider", "price_kind", "price", "source")

KINDS: Mapping[str, tuple[kit.PriceKind, str | None]] = {
    "on_demand": ("on_demand", None),
    "on_demand_community": ("on_demand", "community"),
    "on_demand_secure": ("on_demand", "secure"),
    "spot": ("spot", None),
    "spot_community": ("spot", "community"),
    "spot_secure": ("spot", "secure"),
    "preemptible": ("spot", None),
    "reserved": ("reserved", None),
    "flex_start": ("flex_start", None),
    "serverless": ("serverless", None),
    "marketplace_offer_on_demand": ("on_demand", "marketplace"),
}
"""Accepted price kinds, with the tier that some of them imply."""

_UNITS = {"per_gpu_hour": "gpu_hour", "per_instance_hour": "instance_hour"}
_UNIT_OF_COLUMN = {"usd_per_gpu_hour": "per_gpu_hour", "usd_per_hour": "per_instance_hour"}

_TERM = re.compile(r"(?:reserved|committed)_(\d{1,4})(d|mo|yr)")
_DAYS_PER = {"d": 1, "mo": 30, "yr": 365}
_MAX_TERM_DAYS = 3_660

_PART = re.compile(r"\b(?:part|component) only\b", re.IGNORECASE)
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def read(answers: kit.Answers, config: kit.SourceConfig) -> kit.Reading:
    """One listing per row; identical rows in several files count once.

    Raises SourceChangedError for an answer that is not a table of dated prices.
    """
    seen: dict[tuple[str, ...], str] = {}
    for answer in answers:
        try:
            table = kit.parse_csv(answer.body, answer.url, lower_case=True)
            columns = columns_of(table.columns)
        except (kit.CsvError, ValueError) as error:
            raise kit.SourceChangedError(f"{answer.url}: {error}") from error
        for row in table.rows:
            place = f"line {row.values.get(LINE, row.line)} of {answer.url}"
            try:
                yield _listing(row, columns, answer, place, seen)
            except kit.RowError as problem:
                yield kit.Reject(problem.reason, f"{place}: {problem}", row.values, answer)


def columns_of(names: Sequence[str]) -> dict[str, str]:
    """Map each known column to its name among these lower-case names. Raises ValueError."""
    found = {}
    for column, aliases in ALIASES.items():
        given = [name for name in aliases if name in names]
        if len(given) > 1:
            raise ValueError(f"it has more than one column for {column}: {', '.join(given)}")
        if given:
            found[column] = given[0]
    missing = [ALIASES[name][0] for name in REQUIRED if name not in found]
    if "gpu" not in found and "gpu_id" not in found:
        missing.append("gpu or gpu_id")
    if missing:
        raise ValueError(f"it lacks the columns {', '.join(missing)}; it has {', '.join(names) or 'none'}")
    return found


def day_of(text: str) -> date:
    """Return a row's date. Raises RowError unless the date is YYYY-MM-DD and not before EARLIEST."""
    try:
        day = date.fromisoformat(text.strip())
    except ValueError as error:
        detail = f"its day is not YYYY-MM-DD: {text:.40}"
        raise kit.RowError(kit.RejectReason.INVALID_VALUE, detail) from error
    if day < EARLIEST:
        raise kit.RowError(kit.RejectReason.INVALID_VALUE, f"its day is before {EARLIEST}: {day}")
    return day


def _price(given: Mapping[str, str]) -> Decimal:
    try:
        return kit.price_of(given["price"])
    except kit.RowError as error:
        raise kit.RowError(error.reason, f"its price: {error}") from error


def _listing(
    row: kit.CsvRow,
    columns: Mapping[str, str],
    answer: kit.Answer,
    place: str,
    seen: dict[tuple[str, ...], str],
) -> kit.Listing:
    if row.problem:
        raise kit.RowError(kit.RejectReason.UNREADABLE_ROW, row.problem)
    given = {column: row.values[name].strip() for column, name in columns.items()}
    for column, cell in given.items():
        if len(cell) > MAX_CELL_CHARACTERS:
            detail = f"{column} has more than {MAX_CELL_CHARACTERS} characters"
            raise kit.RowError(kit.RejectReason.TEXT_TOO_LONG, detail)
        if cell.startswith(_FORMULA):
            detail = f"{column} is a spreadsheet formula: {cell:.40}"
            raise kit.RowError(kit.RejectReason.INVALID_VALUE, detail)
    if earlier := seen.get(key := tuple(given.values())):
        raise kit.RowError(kit.RejectReason.DUPLICATE, f"it repeats {earlier}")
    seen[key] = place
    if (day := day_of(given["day"])) != answer.observed_at.date():
        detail = f"its day is {day}, and the answer is of {answer.observed_at:%Y-%m-%d}"
        raise kit.RowError(kit.RejectReason.INVALID_VALUE, detail)
    kind, tier, term_days = _kind(given)
    unit = _unit(given, columns["price"])
    return kit.CellPrice(_price(given), "USD").listing(
        _label(given),
        _gpu_count(given, unit),
        answer,
        context=kit.known(gpu_id=given.get("gpu_id")),
        price_kind=kind,
        term_days=term_days,
        tier=tier,
        native_unit=_UNITS[unit],
        source_url=kit.printable(_needed(given, "source")),
        upstream_provider=_needed(given, "provider"),
        region=given.get("region") or None,
        country=_country(given),
    )


def _needed(given: Mapping[str, str], column: str) -> str:
    if not given.get(column):
        raise kit.RowError(kit.RejectReason.MISSING_FIELD, f"{column} is empty")
    return given[column]


def _label(given: Mapping[str, str]) -> str:
    label = given.get("gpu") or given.get("gpu_id") or _needed(given, "gpu")
    if _PART.search(label):
        raise kit.RowError(kit.RejectReason.OTHER_PRODUCT, f"the price is of a part of a machine: {label}")
    return label


def _gpu_count(given: Mapping[str, str], unit: str) -> int | None:
    """Return the GPU count of the whole offer; None for a machine, whose label must state the count."""
    if text := given.get("gpu_count"):
        return kit.gpu_count(text)
    return 1 if unit == "per_gpu_hour" else None


def _kind(given: Mapping[str, str]) -> tuple[kit.PriceKind, str | None, int | None]:
    """Return the price kind, the tier and the term in days."""
    text, stated_days = given["price_kind"].lower(), set[int]()
    if term := _TERM.fullmatch(text):
        stated_days.add(int(term[1]) * _DAYS_PER[term[2]])
    elif text not in KINDS:
        detail = f"price_kind is not one price of a whole GPU: {text:.80}"
        raise kit.RowError(kit.RejectReason.UNKNOWN_PRICE_KIND, detail)
    kind, tier = KINDS["reserved" if term else text]
    if term_days := given.get("term_days"):
        if not term_days.isdecimal():
            detail = f"term_days is not a whole number: {term_days:.40}"
            raise kit.RowError(kit.RejectReason.UNKNOWN_TERM_LENGTH, detail)
        stated_days.add(int(term_days))
    days = min(stated_days, default=None)
    if days is not None and (len(stated_days) > 1 or kind != "reserved" or not 0 < days <= _MAX_TERM_DAYS):
        detail = (
            f"price_kind and term_days contradict each other, or the term is not 1 to {_MAX_TERM_DAYS} days"
        )
        raise kit.RowError(kit.RejectReason.UNKNOWN_TERM_LENGTH, f"{detail}: {text}, {sorted(stated_days)}")
    return kind, tier, days


def _unit(given: Mapping[str, str], column: str) -> str:
    of_column = _UNIT_OF_COLUMN.get(column)
    unit = given.get("unit") or of_column or ""
    if unit not in _UNITS or of_column not in (None, unit):
        detail = f"unit of {column} is not {' or '.join(_UNITS)}, or contradicts it: {unit or 'none'}"
        raise kit.RowError(kit.RejectReason.UNKNOWN_UNIT, detail)
    return unit


def _country(given: Mapping[str, str]) -> str | None:
    text = given.get("country") or None
    if text and (len(text) != 2 or kit.place_of("", None, text).country is None):
        detail = f"country is not a code of ISO 3166-1 alpha-2: {text:.40}"
        raise kit.RowError(kit.RejectReason.INVALID_VALUE, detail)
    return text
