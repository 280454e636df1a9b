"""Prices of one source that contradict each other are flagged: contradictions.csv."""

from pipeline.catalog.source_config import ReviewedPrice, source_config
from pipeline.contracts.offer import Offer
from pipeline.gates.contradictions import flag_conflicting_prices, flag_contradictions, succeeds
from tests.gates.screening import A100, H100, H100_PCIE, offers_in, reviewed, rows


def flags(offers: list[Offer], *reviewed: ReviewedPrice) -> str:
    """Return the flag of each offer, a dash for none."""
    config = source_config("runpod").model_copy(update={"reviewed_prices": reviewed})
    found = flag_contradictions(offers, config)
    for one, other in zip(found, offers, strict=True):
        assert one == other.model_copy(update={"flag_reason": one.flag_reason})
    return " | ".join(each.flag_reason or "-" for each in found)


def test_offers_have_the_flags_of_the_table() -> None:
    table = rows("contradictions.csv")
    wrong = [(row, found) for row in table if (found := flags(offers_in(row["offers"]))) != row["flags"]]
    assert wrong == []


def test_a_price_that_a_person_confirmed_is_in_no_contradiction() -> None:
    pair = offers_in("2.00 | 2.01 price_kind=reserved term_days=365")
    confirmed = reviewed(offer={"raw_label": "H100 SXM", "price_kind": "reserved"}, price="2.01")
    assert flags(pair, confirmed) == "- | -"
    assert flags(pair, reviewed()) == "reserved_not_below_on_demand | reserved_not_below_on_demand"


def test_the_successor_of_a_card() -> None:
    """An SXM board is dearer than single cards of the next generation; a board with more memory is no older
    card."""
    expected = {
        ("h200-sxm-141gb", H100): True,
        (H100, "h200-sxm-141gb"): False,
        (H100, A100): True,
        (H100_PCIE, A100): False,
        ("h100-80gb", A100): True,
        (H100, "a100-pcie-80gb"): True,
        ("rtx-5090", "rtx-4090"): True,
        ("rtx-5090", "rtx-4090-48gb"): False,
        (H100, "nothing"): False,
        ("nothing", H100): False,
    }
    assert {pair: succeeds(*pair) for pair in expected} == expected


def test_offers_that_differ_only_in_their_price_conflict() -> None:
    """Cards without a machine and a region are compared by their label: CPU and memory explain no second
    price."""
    conflict = "conflicting_prices | conflicting_prices"
    expected = {
        "2.00 | 3.00": conflict,
        "2.00 | 2.00": "- | -",
        "2.00 | 3.00 vcpus=8": conflict,
        "2.00 | 3.00 native_currency=EUR": "- | -",
        "2.00 | 3.00 provider=Another": "- | -",
        "2.00 | 3.00 gpu_id=h100-pcie-80gb": "- | -",
        "2.00 | 3.00 flag_reason=coming_soon": "conflicting_prices | coming_soon",
        "2.00 tier=marketplace | 3.00 tier=marketplace": "- | -",
        "2.00 region=eu | 3.00 region=eu": conflict,
        "2.00 region=eu | 3.00 region=eu vcpus=8": "- | -",
        "2.00 instance_type=h100.1 | 3.00 instance_type=h100.1": conflict,
        "2.00 instance_type=h100.1 | 3.00 instance_type=h100.1 vcpus=8": "- | -",
    }
    columns = {"native_price", "usd_per_hour", "usd_per_gpu_hour"}
    found = {cell: flag_conflicting_prices(offers_in(cell), columns) for cell in expected}
    assert {
        cell: " | ".join(offer.flag_reason or "-" for offer in offers) for cell, offers in found.items()
    } == expected
