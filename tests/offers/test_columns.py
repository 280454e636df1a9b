"""The columns of an offer are those of the contract, in SQL and in the readers' listing, too."""

from collections.abc import Iterable
from dataclasses import fields
from typing import get_args

from pydantic import BaseModel

from pipeline.catalog.schema import read_table
from pipeline.contracts.listing import PRICE_KINDS, Listing, NativeUnit, TierClass
from pipeline.contracts.offer import Continent, MatchConfidence, MatchStatus, Offer, RejectedRow, SizeEvidence
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.contracts.training import CHECKPOINTINGS, METHODS


def test_tables_have_the_columns_of_their_contracts() -> None:
    contracts: dict[str, type[BaseModel]] = {"offers": Offer, "rejects": RejectedRow}
    for table, contract in contracts.items():
        columns = [(column.name, column.nullable) for column in read_table(table).described()]
        assert columns == [
            ("day", False),
            *(
                (name, name == "raw" or type(None) in get_args(field.annotation))
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
