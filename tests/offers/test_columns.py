"""The columns of an offer are those of the contract, in SQL and in the readers' listing, too."""

from collections.abc import Iterable
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from pipeline.catalog.schema import read_table
from pipeline.contracts.listing import PRICE_KINDS, Listing, NativeUnit, TierClass
from pipeline.contracts.offer import Continent, MatchConfidence, MatchStatus, Offer, RejectedRow, SizeEvidence
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.contracts.training import CHECKPOINTINGS, METHODS
from pipeline.home.paths import Home
from pipeline.warehouse.query import ask, reader

SQL_TYPES: dict[type, str] = {
    bool: "BOOLEAN",
    int: "INTEGER",
    float: "DOUBLE",
    Decimal: "DECIMAL(18,8)",
    date: "DATE",
    datetime: "TIMESTAMP WITH TIME ZONE",
}


def sql_type(annotation: Any) -> str:
    """Return the column type of a field: text for literals, enums and JSON."""
    kind = get_origin(annotation)
    if kind is tuple:
        return "INTEGER[]"
    if kind is not None and kind is not Literal:  # Annotated[value, ...], or value | None
        return sql_type(get_args(annotation)[0])
    return SQL_TYPES.get(annotation, "VARCHAR")


def test_tables_have_the_columns_of_their_contracts() -> None:
    contracts: dict[str, type[BaseModel]] = {"offers": Offer, "rejects": RejectedRow}
    for table, contract in contracts.items():
        columns = [(column.name, column.type, column.nullable) for column in read_table(table).described()]
        assert columns == [
            ("day", "DATE", False),
            *(
                (name, sql_type(field.annotation), name == "raw" or type(None) in get_args(field.annotation))
                for name, field in contract.model_fields.items()
            ),
        ]
    offers = read_table("offers").described()
    assert read_table("offers_latest").described()[: len(offers)] == offers
    # These say how to fill other columns.
    stated = {field.name for field in fields(Listing)} - Offer.model_fields.keys()
    assert stated == {"answer", "context", "label_kind", "upstream_provider"}


def test_columns_allow_the_values_that_the_code_has() -> None:
    allowed: dict[tuple[str, str], Iterable[str]] = {
        ("offers", "flag_reason"): FlagReason,
        ("offers", "native_unit"): get_args(NativeUnit),
        ("offers", "continent"): get_args(Continent),
        ("offers", "price_kind"): PRICE_KINDS,
        ("offers", "match_status"): get_args(MatchStatus),
        ("offers", "match_confidence"): get_args(MatchConfidence),
        ("offers", "size_evidence"): get_args(SizeEvidence),
        ("offers", "tier_class"): get_args(TierClass),
        ("workloads", "method"): METHODS,
        ("plans", "checkpointing"): CHECKPOINTINGS,
    }
    wrong = []
    for (table, column), values in allowed.items():
        (found,) = [each for each in read_table(table).described() if each.name == column]
        if sorted(found.values) != sorted(values) or any(value not in found.meaning for value in values):
            wrong.append((table, column))
    assert wrong == []


def test_every_reason_for_a_reject_is_published_with_its_sentence(sample_home: Home) -> None:
    with reader(sample_home.published) as connection:
        published = {row["reason"]: row for row in ask(connection, "FROM reject_reasons").dicts()}
        used = {reason for (reason,) in ask(connection, "SELECT DISTINCT reason FROM rejects").rows}
    assert published == {
        reason.value: {"reason": reason.value, "sentence": reason.sentence, "held": reason.held}
        for reason in RejectReason
    }
    assert used <= published.keys()
    sentences = [reason.sentence for reason in RejectReason]
    assert len(set(sentences)) == len(sentences)
    assert [sentence for sentence in sentences if not (sentence[0].isupper() and sentence[-1] == ".")] == []
    assert (RejectReason.PRICE_JUMP.held, RejectReason.UNREADABLE_PRICE.held) == (True, False)
