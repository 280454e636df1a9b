"""Prices of one source that contradict each other are flagged: contradictions.csv."""

from pipeline.contracts.offer import Offer
from pipeline.gates.contradictions import flag_conflicting_prices, flag_contradictions
from pipeline.gates.reviews import Review, Reviews
from tests.gates.screening import offers_in, reviewed, rows


def flags(offers: list[Offer], *reviews: Review) -> str:
    """Return the flag of each offer, a dash for none."""
    found = flag_contradictions(offers, Reviews(reviews))
    for one, other in zip(found, offers, strict=True):
        assert one == other.model_copy(update={"flag_reason": one.flag_reason})
    return " | ".join(each.flag_reason or "-" for each in found)


def test_offers_have_the_flags_of_the_table() -> None:
    table = rows("contradictions.csv")
    wrong = [(row, found) for row in table if (found := flags(offers_in(row["offers"]))) != row["flags"]]
    assert wrong == []


def test_a_price_that_a_person_confirmed_is_in_no_contradiction() -> None:
    pair = offers_in("2.00 | 2.01 price_kind=reserved term_days=365")
    assert flags(pair, reviewed(pair[1])) == "- | -"
    for other in (reviewed(pair[1], price="2.10"), reviewed(pair[1], "refused")):
        assert flags(pair, other) == "reserved_not_below_on_demand | reserved_not_below_on_demand"


def test_offers_that_differ_only_in_their_price_conflict() -> None:
    """Cards without a machine and a region are compared by their label: CPU and memory explain no second
    price."""
    columns = {"native_price", "usd_per_hour", "usd_per_gpu_hour"}
    wrong = []
    for row in rows("conflicts.csv"):
        found = flag_conflicting_prices(offers_in(row["offers"]), columns)
        if " | ".join(each.flag_reason or "-" for each in found) != row["flags"]:
            wrong.append((row, found))
    assert wrong == []
