"""JSON answers read field by field, with an audit of fields that are new and of fields that are gone; and the
same audit of the columns of tables.

A reader makes one ``FieldAudit`` per reading, reads every object through it and ends with its ``warnings``.
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
"""Prefix of the fields around the list of items, such as ``answer.Count``."""

MAX_WARNINGS = 20
MAX_NAME_CHARACTERS = 80
MAX_NAMES_CHARACTERS = 200

LEAST_COLUMNS_TO_COMPARE = 3
"""A table with fewer columns is like any other that has a name and a price."""


@dataclass(slots=True)
class _Fields:
    """Names of the fields of the audited objects at one path, and which of them were read."""

    path: str
    seen: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    peeked: set[str] = field(default_factory=set)


class FieldAudit:
    """Which fields the answers of one reading have, and which of them the reader read; and which columns its
    tables have, against those that the yaml knows.

    A field is named by its path from the item on, such as ``gpu_info.count``, a column by its caption.
    """

    def __init__(self, config: SourceConfig) -> None:
        self.config = config
        self._fields: dict[str, _Fields] = {}
        self._columns: dict[str, str] = {}
        self._skipped: list[tuple[str, ...]] = []

    def columns(self, captions: Iterable[str]) -> None:
        """Note the captions of a table that is read. Case does not matter; no caption is no column."""
        self._columns |= _by_spelling(captions)

    def table(self, captions: Iterable[str], *, is_read: bool) -> None:
        """Note the captions of a table as ``columns`` does, or that it is skipped for not being of GPUs: it
        may be one of those that are read, with another name for the column that tells them apart."""
        if is_read:
            self.columns(captions)
        else:
            self._skipped.append(tuple(captions))

    def envelope(self, answer: Answer, bare_list: str) -> "JsonObject":
        """The answer as an object. An answer that is a list is taken for the field ``bare_list`` of one.

        Raises SourceChangedError when it is neither.
        """
        body = answer.json()
        if isinstance(body, list):
            return JsonObject({bare_list: body}, answer, _Fields(ENVELOPE), self)
        if not isinstance(body, dict):
            raise answer.changed("the answer is neither an object nor a list")
        return self.item(body, answer, ENVELOPE)

    def items(self, answer: Answer, *names: str) -> list["JsonObject"]:
        """The objects of the list under the one of ``names`` that the answer has, or of the answer itself.

        Raises SourceChangedError when there is no such list, or one without objects.
        """
        return self.envelope(answer, names[0]).items(*names)

    def item(self, raw: Mapping[str, Any], answer: Answer, path: str = "") -> "JsonObject":
        """An object of the answer, for a reader that finds its items in another way than ``items``."""
        return JsonObject(raw, answer, self.fields_at(path), self)

    def fields_at(self, path: str) -> _Fields:
        """What is known of the fields of the objects at a path."""
        if path not in self._fields:
            self._fields[path] = _Fields(path)
        return self._fields[path]

    def warnings(self) -> Iterator[ReaderWarning]:
        """One warning per new or missing field or column that the source's yaml does not list."""
        new, missing = set[str](), set[str]()
        for at in self._fields.values():
            new |= {at.path + name[:MAX_NAME_CHARACTERS] for name in at.seen - at.read - at.peeked}
            # Where no object was counted, nothing is known to be missing.
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
        """What a page that still reads has changed: a renamed column is a new one and a missing one. Where no
        table was read (an API answered instead), nothing is known to be missing."""
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
                yield f"a table like those that are read is not read, its columns are {shown}"


def _by_spelling(captions: Iterable[str]) -> dict[str, str]:
    """Captions by what is compared of them, without those that are empty."""
    return {name.casefold(): name for caption in captions if (name := clean_text(caption))}


@dataclass(slots=True, eq=False)
class JsonObject:
    """One JSON object, whose fields are audited as they are read; ``raw`` is the whole object, for rejects.

    Accessors with several names read the first that has a value: different spellings of one field.
    """

    raw: Mapping[str, Any]
    answer: Answer
    _fields: _Fields
    _audit: FieldAudit
    _is_counted: bool = False

    @property
    def config(self) -> SourceConfig:
        """What the yaml says of the source."""
        return self._audit.config

    def peek(self, *path: str) -> Any:
        """A field, or a field of nested objects, that says whether the object is wanted.

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
        """The value of a field as the answer has it; None where there is none."""
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
        """A text that is not empty. Raises RowError."""
        value = self.get(*names)
        if not isinstance(value, str) or not value:
            raise RowError(
                RejectReason.MISSING_FIELD, f"{self._fields.path}{names[0]} is no text but {value!r}"
            )
        return value

    def optional_text(self, *names: str) -> str | None:
        """A text; None where there is none, or an empty one, or something else."""
        value = self.get(*names)
        return value if isinstance(value, str) and value else None

    def decimal(self, *names: str) -> Decimal:
        """An exact number. Raises RowError."""
        return self._read(number, *names)

    def whole_number(self, *names: str) -> int:
        """A whole number. Raises RowError."""
        return self._read(whole_number, *names)

    def _read(self, read: Callable[[Any], _Number], *names: str) -> _Number:
        try:
            return read(self.get(*names))
        except UnreadableError as error:
            detail = f"{self._fields.path}{names[0]}: {error}"
            raise RowError(RejectReason.MISSING_FIELD, detail) from error

    def optional_number(self, *names: str, per: int = 1) -> float | None:
        """A number that no price depends on, in units of ``per`` of the answer's; None where there is none or
        it is unreadable."""
        amount = prices.optional_number(self.get(*names))
        return None if amount is None else amount / per

    def optional_decimal(self, *names: str) -> Decimal | None:
        """An exact number that no price depends on; None where there is none or it is unreadable."""
        try:
            return number(self.get(*names))
        except UnreadableError:
            return None

    def price(self, *names: str) -> Decimal:
        """A price above zero. Raises RowError."""
        try:
            return prices.price_of(self.get(*names))
        except RowError as error:
            raise RowError(error.reason, f"{self._fields.path}{names[0]}: {error}") from error

    def gpu_count(self, *names: str) -> int:
        """A number of GPUs, at least 1. Raises RowError."""
        return gpu_counts.gpu_count(self.get(*names))

    def object(self, *names: str) -> "JsonObject":
        """The object in a field; an empty one where there is none."""
        return self._inside(names[0], self.get(*names))

    def objects(self, *names: str) -> list["JsonObject"]:
        """The objects of the list in a field; what is no object is skipped."""
        value = self.get(*names)
        found = value if isinstance(value, list) else []
        return [self._inside(names[0], raw) for raw in found if isinstance(raw, dict)]

    def objects_by_name(self, *names: str) -> dict[str, "JsonObject"]:
        """The objects of an object whose field names are data: regions, hosts, GPUs.

        What is no object is taken for an empty one, so that its name is not lost.
        """
        value = self.get(*names)
        found = value if isinstance(value, dict) else {}
        return {name: self._inside(names[0], raw) for name, raw in found.items()}

    def _inside(self, name: str, value: Any) -> "JsonObject":
        """The object in a field. What is read of an empty one in its place is not audited."""
        if isinstance(value, dict):
            return self._audit.item(value, self.answer, f"{self._fields.path}{name}.")
        return JsonObject({}, self.answer, _Fields(""), self._audit)

    def items(self, *names: str) -> list["JsonObject"]:
        """The items of an envelope: the objects of the list under the one of ``names`` that it has.

        Raises SourceChangedError when there is no such list, or one without objects.
        """
        lists = [self.get(name) for name in names if name in self]
        if len(lists) != 1 or not isinstance(lists[0], list):
            raise self.answer.changed(f"the answer has no list under {' or '.join(names)}")
        objects = [self._audit.item(raw, self.answer) for raw in lists[0] if isinstance(raw, dict)]
        if lists[0] and not objects:
            raise self.answer.changed(f"the list under {' or '.join(names)} has no objects")
        return objects

    def listing(self, label: str, gpu_count: float | None, price: Decimal, **columns: Any) -> Listing:
        """The listing of a price: per hour of the whole machine, on demand and in the source's currency where
        the columns do not say otherwise."""
        usual = {
            "native_unit": "instance_hour",
            "price_kind": "on_demand",
            "native_currency": self.config.currency,
        }
        return Listing(
            raw_label=label, gpu_count=gpu_count, native_price=price, answer=self.answer, **(usual | columns)
        )

    def name(self, *names: str) -> str:
        """What a reject calls the object: the values of these fields."""
        return ", ".join(str(self.peek(name)) for name in names)

    def reject(self, error: RowError, name: str, raw: Any = None) -> Reject:
        """The reject of this object, or of ``raw``, the object with what is known from around it."""
        return Reject(error.reason, f"{name}: {error}", raw or self.raw, self.answer)


def read_rows(
    items: Iterable[JsonObject], read: Callable[[JsonObject], Iterator[Listing | Reject]], *named_by: str
) -> Iterator[Listing | Reject]:
    """The rows that ``read`` yields for each item. A RowError of it makes the item a reject, which is named
    by the fields ``named_by``."""
    for item in items:
        try:
            yield from read(item)
        except RowError as error:
            yield item.reject(error, item.name(*named_by))
