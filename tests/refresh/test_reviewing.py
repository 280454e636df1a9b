"""A person's word on what is held or refused is stored, and applied to the day at once."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from pipeline.contracts.errors import GpufareError
from pipeline.gates.reviews import read_reviews
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.ingest import read_again
from pipeline.refresh.reviewing import review
from tests.conftest import gpufare
from tests.scenario import BAD, GOOD

CARD = "NVIDIA GeForce RTX 4090"


def prices(
    home: Home, label: str = CARD, tier: str = "secure"
) -> list[tuple[Decimal, str | None, str | None]]:
    """Return the price, the doubt and the evidence of a card's on-demand offers at RunPod on the bad day."""
    found = Records(home).offers("runpod", BAD)
    return [
        (each.native_price.normalize(), each.doubt, each.believed_because)
        for each in found
        if (each.raw_label, each.price_kind, each.tier) == (label, "on_demand", tier)
    ]


def test_a_held_price_is_confirmed_and_refused(copy_of: Callable[..., Home]) -> None:
    home = copy_of(BAD)
    assert prices(home) == [(Decimal("0.74"), "moved_by_a_unit", None)]
    done = gpufare("confirm", "runpod", "--label", "rtx 4090", "--why", "on the page", home=home)
    assert done.stdout.splitlines() == [
        f"{CARD} (rtx-4090 1.0 on_demand secure gpu_hour): 7.4 USD is believed from now on",
        "runpod: 46 offers of 2026-08-23 are accepted; `gpufare refresh` publishes them",
    ]
    assert prices(home) == [(Decimal("7.4"), None, "person")]
    (kept,) = read_reviews(home).found
    assert (kept.source, kept.day, kept.verdict, kept.why) == ("runpod", BAD, "believed", "on the page")
    with pytest.raises(GpufareError, match="holds no price of 2026-08-23 whose label contains 'RTX 4090'"):
        review(home, "runpod", "refused", "RTX 4090")
    held = [row["reason"] for row in Records(home).rejects("runpod", BAD)]
    assert "price_of_another_offer" in held
    review(home, "runpod", "refused")
    held = [row["reason"] for row in Records(home).rejects("runpod", BAD)]
    assert ("price_of_another_offer" in held, "refused_by_a_person" in held) == (False, True)


def test_a_refused_reading_is_confirmed_unless_nothing_could_be_read(copy_of: Callable[..., Home]) -> None:
    home = copy_of(BAD)
    (told,) = review(home, "linode", "believed")
    assert told.startswith(f"linode: the reading of {BAD} stays refused: 13 of 13 prices are not between")
    for source in ("lambda", "together"):  # the answer could not be read, and broke off
        with pytest.raises(GpufareError, match=f"{source} holds no price of "):
            review(home, source, "believed")


def test_what_cannot_be_reviewed(copy_of: Callable[..., Home]) -> None:
    home = copy_of(GOOD)
    with pytest.raises(GpufareError, match="modal has never been read in "):
        review(home, "modal", "believed")
    with pytest.raises(GpufareError, match="crusoe holds no price of 2026-08-22, so there is nothing to"):
        review(home, "crusoe", "believed")
    assert read_reviews(home).found == ()


def test_a_damaged_file_of_reviews_fails_the_source_and_says_what_to_do(copy_of: Callable[..., Home]) -> None:
    """A price that a person refused must not be believed because of it."""
    home = copy_of(GOOD)
    home.reviews.write_text("[{]")
    outcome = read_again("runpod", GOOD, home)
    assert outcome is not None
    assert (outcome.accepted, outcome.result) == (False, "failed_here")
    assert "reviews.json cannot be used (it is damaged): mend it, or delete it" in (outcome.error or "")
