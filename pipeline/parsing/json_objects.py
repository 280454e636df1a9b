"""Reading of JSON answers field by field, with an audit of new and missing fields and table columns.

``reader`` and ``joint_reader`` create one ``FieldAudit`` per reading, and yield its ``warnings`` last.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, ReaderWarning, Reject
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing import gpu_counts, prices
from pipeline.parsing.prices import RowError
from pipeline.parsing.text import UnreadableError, clean_text, number, whole_number

_Number = TypeVar("_Number", Decimal, int)

ENVELOPE = "answer."
"""Prefix for the names of fields outside the list of items, as in ``answer.Count``."""

MAX_WARNINGS = 20
MAX_NAME_CHARACTERS = 80
MAX_NAMES_CHARACTERS = 200

LEAST_COLUMNS_TO_COMPARE = 3
"""A table with fewer columns than this resembles any table with a name and a price."""


@dataclass(slots=True)
class _Fields:
    """Names of the fields in the objects at one path: those that were seen, read or peeked at."""

    path: str
    seen: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    peeked: set[str] = field(default_factory=set)


class FieldAudit:
    """Compares the fields in one reading's answers with the fields that are read, and the columns in its
    tables with the columns in the yaml.

    A field is identified by its path within the item, such as ``gpu_info.count``; a column, by its caption.
    """

    def __init__(self, config: SourceConfig) -> None:
        self.config = config
        self._fields: dict[str, _Fields] = {}
        self._columns: dict[str, str] = {}
        self._skipped: list[tuple[str, ...]] = []

    def columns(self, captions: Iterable[str]) -> None:
        """Record the captions of a table that is read, ignoring case and empty captions."""
        self._columns |= _by_spelling(captions)

    def table(self, captions: Iterable[str], *, is_read: bool) -> None:
        """Record the captions of a table that is read, or skipped for lack of a GPU table's columns: a
        skipped table may be a GPU table with a renamed column."""
        if is_read:
            self.columns(captions)
        else:
            self._skipped.append(tuple(captions))

    def envelope(self, answer: Answer, bare_list: str) -> "JsonObject":
        """Return the answer as an object; a bare list becomes the object's field named by ``bare_list``.

        Raises SourceChangedError if the answer is neither an object nor a list.
        """
        body = answer.json()
        if isinstance(body, list):
            return JsonObject({bare_list: body}, answer, _Fields(ENVELOPE), self)
        if not isinstance(body, dict):
            raise answer.changed("the answer is neither an object nor a list")
        return self.item(body, answer, ENVELOPE)

    def items(self, answer: Answer, *names: str) -> list["JsonObject"]:
        """Return the objects in the answer's list: the list under one of ``names``, or the answer itself.

        Raises SourceChangedError if there is no such list, or if it contains items but no objects.
        """
        return self.envelope(answer, names[0]).items(*names)

    def item(self, raw: Mapping[str, Any], answer: Answer, path: str = "") -> "JsonObject":
        """Return an audited object, for a reader that does not find its items with ``items``."""
        return JsonObject(raw, answer, self.fields_at(path), self)

    def fields_at(self, path: str) -> _Fields:
        """Return the fields recorded for the objects at a path."""
        if path not in self._fields:
            self._fields[path] = _Fields(path)
        return self._fields[path]

    def warnings(self) -> Iterator[ReaderWarning]:
        """Yield a warning for each new or missing field or column that the source's yaml does not list."""
        new, missing = set[str](), set[str]()
        for at in self._fields.values():
            new |= {at.path + name[:MAX_NAME_CHARACTERS] for name in at.seen - at.read - at.peeked}
            # Unless an object was read, no field counts as missing.
            missing |= {at.path + name for name in at.read - at.seen if at.seen}
        new -= set(self.config.ignored_fields)
        missing -= set(self.config.optional_fields)
        found = [f"new field {name!r}, which is not read" for name in sorted(new)]
        found += [f"missing field {name!r}" for name in sorted(missing)]
        found += self._column_warnings()
        if len(found) > MAX_WARNINGS:
            found[MAX_WARNINGS:] = [f"{len(found) - MAX_WARNINGS} more new or missing fields"]
        yield from map(ReaderWarning, found)

    def _column_warnings(self) -> Iterator[str]:
        """Yield column changes on a page that can still be read: a renamed column is both new and missing.
        Unless a table was read (an API may have answered instead), no column counts as missing."""
        known = {name.casefold() for name in self.config.columns}
        for key in sorted(self._columns.keys() - known):
            yield f"new column {self._columns[key][:MAX_NAME_CHARACTERS]!r}"
        for name in self.config.columns if self._columns else ():
            if name.casefold() not in self._columns and name not in self.config.optional_fields:
                yield f"missing column {name!r}"
        for captions in dict.fromkeys(self._skipped):
            names = _by_spelling(captions)
            is_ignored = any(name in self.config.ignored_fields for name in names.values())
            if len(names) >= LEAST_COLUMNS_TO_COMPARE and len(names.keys() - known) <= 1 and not is_ignored:
                shown = ", ".join(names.values())[:MAX_NAMES_CHARACTERS]
                yield f"a table like those that are read was skipped; its columns are {shown}"


def _by_spelling(captions: Iterable[str]) -> dict[str, str]:
    """Return the non-empty captions, keyed by their lower-case spelling."""
    return {name.casefold(): name for caption in captions if (name := clean_text(caption))}


@dataclass(slots=True, eq=False)
class JsonObject:
    """A JSON object whose fields are audited as they are read; ``raw`` is the whole object, for rejects.

    Accessors may take several names, which are spellings of one field, and read the first that has a value.
    """

    raw: Mapping[str, Any]
    answer: Answer
    _fields: _Fields
    _audit: FieldAudit
    _is_counted: bool = False

    @property
    def config(self) -> SourceConfig:
        """The configuration in the source's yaml."""
        return self._audit.config

    def peek(self, *path: str) -> Any:
        """Return the value of a field, possibly in a nested object, to decide whether the object is wanted.

        The fields of an object that is only peeked at are not audited.
        """
        value: Any = self.raw
        fields = self._fields
        for name in path:
            fields.peeked.add(name)
            value = value.get(name) if isinstance(value, dict) else None
            fields = self._audit.fields_at(f"{fields.path}{name}.")
        return value

    def get(self, name: str, *others: str) -> Any:
        """Return the value of a field as it appears in the answer; None if the field is missing."""
        if not self._is_counted:
            self._fields.seen.update(self.raw)
            self._is_counted = True
        if not others:
            self._fields.read.add(name)
            return self.raw.get(name)
        present = [spelling for spelling in (name, *others) if spelling in self.raw]
        self._fields.read.update(present or [name])
        return next((value for spelling in present if (value := self.raw[spelling]) not in (None, "")), None)

    def __contains__(self, name: str) -> bool:
        present = name in self.raw
        if present:
            self.get(name)
        return present

    def text(self, *names: str) -> str:
        """Return a non-empty string. Raises RowError if there is none."""
        value = self.get(*names)
        if not isinstance(value, str) or not value:
            raise RowError(
                RejectReason.MISSING_FIELD, f"{self._fields.path}{names[0]} is {value!r}, not a text"
            )
        return value

    def optional_text(self, *names: str) -> str | None:
        """Return a non-empty string; None for any other value."""
        value = self.get(*names)
        return value if isinstance(value, str) and value else None

    def decimal(self, *names: str) -> Decimal:
        """Return an exact number. Raises RowError if there is none."""
        return self._read(number, *names)

    def whole_number(self, *names: str) -> int:
        """Return a whole number. Raises RowError if there is none."""
        return self._read(whole_number, *names)

    def _read(self, read: Callable[[Any], _Number], *names: str) -> _Number:
        try:
            return read(self.get(*names))
        except UnreadableError as error:
            detail = f"{self._fields.path}{names[0]}: {error}"
            raise RowError(RejectReason.MISSING_FIELD, detail) from error

    def optional_number(self, *names: str, per: int = 1) -> float | None:
        """Return a number that no price depends on, divided by ``per``; None if missing or unreadable."""
        amount = prices.optional_number(self.get(*names))
        return None if amount is None else amount / per

    def optional_decimal(self, *names: str) -> Decimal | None:
        """Return an exact number that no price depends on; None if missing or unreadable."""
        try:
            return number(self.get(*names))
        except UnreadableError:
            return None

    def price(self, *names: str) -> Decimal:
        """Return a price above zero. Raises RowError if there is none."""
        try:
            return prices.price_of(self.get(*names))
        except RowError as error:
            raise RowError(error.reason, f"{self._fields.path}{names[0]}: {error}") from error

    def gpu_count(self, *names: str) -> int:
        """Return a number of GPUs, at least 1. Raises RowError if there is none."""
        return gpu_counts.gpu_count(self.get(*names))

    def object(self, *names: str) -> "JsonObject":
        """Return the object in a field, or an empty object if the field contains none."""
        return self._inside(names[0], self.get(*names))

    def objects(self, *names: str) -> list["JsonObject"]:
        """Return the objects in a field's list; other items of the list are skipped."""
        value = self.get(*names)
        found = value if isinstance(value, list) else []
        return [self._inside(names[0], raw) for raw in found if isinstance(raw, dict)]

    def objects_by_name(self, *names: str) -> dict[str, "JsonObject"]:
        """Return the objects inside an object whose field names are data, such as regions, hosts or GPUs.

        A value that is not an object counts as an empty object, so that its name is not lost.
        """
        value = self.get(*names)
        found = value if isinstance(value, dict) else {}
        return {name: self._inside(names[0], raw) for name, raw in found.items()}

    def _inside(self, name: str, value: Any) -> "JsonObject":
        """Return the object in a field, or else an empty object whose fields are not audited."""
        if isinstance(value, dict):
            return self._audit.item(value, self.answer, f"{self._fields.path}{name}.")
        return JsonObject({}, self.answer, _Fields(""), self._audit)

    def items(self, *names: str) -> list["JsonObject"]:
        """Return the items of an envelope: the objects in its list under one of ``names``.

        Raises SourceChangedError if there is no such list, or if it contains items but no objects.
        """
        lists = [self.get(name) for name in names if name in self]
        if len(lists) != 1 or not isinstance(lists[0], list):
            raise self.answer.changed(f"the answer has no list under {' or '.join(names)}")
        objects = [self._audit.item(raw, self.answer) for raw in lists[0] if isinstance(raw, dict)]
        if lists[0] and not objects:
            raise self.answer.changed(f"the list under {' or '.join(names)} has no objects")
        return objects

    def listing(self, label: str, gpu_count: float | None, price: Decimal, **columns: Any) -> Listing:
        """Return the listing for a price. Unless ``columns`` say otherwise, the price is per hour of the
        whole machine, on demand and in the source's currency."""
        return prices.CellPrice(price, self.config.currency).listing(label, gpu_count, self.answer, **columns)

    def name(self, *names: str) -> str:
        """Return the object's name for rejects, made up of the values of these fields."""
        return ", ".join(str(self.peek(name)) for name in names)

    def reject(self, error: RowError, name: str, raw: Any = None) -> Reject:
        """Return a reject for this object; ``raw``, if given, is stored instead of the whole object."""
        return Reject(error.reason, f"{name}: {error}", raw or self.raw, self.answer)


def read_rows(
    items: Iterable[JsonObject], read: Callable[[JsonObject], Iterator[Listing | Reject]], *named_by: str
) -> Iterator[Listing | Reject]:
    """Yield the rows that ``read`` yields for each item. An item that raises RowError becomes a reject, named
    after the item's ``named_by`` fields."""
    for item in items:
        try:
            yield from read(item)
        except RowError as error:
            yield item.reject(error, item.name(*named_by))
