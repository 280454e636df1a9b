"""A reading that lacks a fifth of the usual list causes a warning, and one that lacks half is refused."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from pipeline.contracts.offer import Offer
from pipeline.gates.losses import Losses, losses, read_usual, usual_of
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.paths import Home
from pipeline.record.records import Records
from tests.gates.screening import DAY
from tests.gates.test_reading import outside_bounds
from tests.offers.builders import offer


def listed(count: int, **facts: Any) -> list[Offer]:
    return [offer(raw_label=f"{n}", **facts) for n in range(count)]


def test_how_much_of_a_list_may_be_lost() -> None:
    usual = usual_of([listed(10)] * 3)
    text = "{} offers, where 10 are usual"
    few = {9: Losses(), 8: Losses((text.format(8),)), 6: Losses((text.format(6),))}
    assert {count: losses(listed(count), [], usual) for count in few} == few
    assert losses(listed(5), [], usual) == Losses((text.format(5),), text.format(5))
    unpriced = outside_bounds(4, "not_offered")
    assert losses(listed(8), unpriced, usual).texts == (f"{text.format(8)}; 4 rows have no price",)
    assert losses([], [], usual_of([])) == Losses()


def test_the_usual_list_is_the_median_of_a_week() -> None:
    """Two lists that shrink little by little are compared with what there was before."""
    shrinking = [listed(count) for count in (28, 28, 28, 28, 20, 14, 14)]
    assert losses(listed(14), [], usual_of(shrinking)).refusal == ("14 offers, where 28 are usual")


def test_a_part_that_is_lost_is_named() -> None:
    rest = listed(40)
    usual = usual_of(
        [[*rest, *listed(4, price_kind="spot", region="eu", source_url="https://x/spot", tier="vm")]]
    )
    gone = losses(rest, [], usual)
    assert gone == Losses(
        (
            "https://x/spot (vm, spot): 0 offers, where 4 are usual",
            "region eu: 0 offers, where 4 are usual",
            "spot: 0 offers, where 4 are usual",
        )
    )
    half = listed(2, price_kind="spot", region="eu", source_url="https://x/spot", tier="vm")
    assert losses([*rest, *half], [], usual).texts == (gone.texts[0].replace("0 offers", "2 offers"),)
    three = listed(3, price_kind="spot", region="eu", source_url="https://x/spot", tier="vm")
    assert losses([*rest, *three], [], usual) == Losses()


def test_a_card_that_is_lost_is_named() -> None:
    usual = usual_of([[*listed(9), offer(gpu_id="b200-sxm-180gb")]] * 2)
    assert losses(listed(9), [], usual).texts == ("b200-sxm-180gb: 0 offers, where 1 are usual",)
    at_times = usual_of([listed(9), [*listed(9), offer(gpu_id="b200-sxm-180gb")], listed(9)])
    assert losses(listed(9), [], at_times) == Losses()


def test_which_hosts_a_marketplace_has_is_not_compared() -> None:
    hosts = [*listed(10), *listed(2, tier="marketplace", region="eu", source_url="https://x/hosts")]
    assert losses(listed(10), [], usual_of([hosts])) == Losses()
    spot = [*listed(10), *listed(2, tier="marketplace", price_kind="spot")]
    assert losses(listed(10), [], usual_of([spot])).texts == ("spot: 0 offers, where 2 are usual",)


def test_the_last_accepted_readings_are_compared(tmp_path: Path) -> None:
    records = Records(Home(tmp_path))
    days = [DAY - timedelta(days=n) for n in range(THRESHOLDS.growth_days + 2)]
    for number, day in enumerate(days):
        records.write_accepted(day, "acme", listed(1 + number))
    usual = read_usual(records, "acme", DAY)
    assert usual.offers == 5
    assert read_usual(records, "other", DAY).offers == 0
