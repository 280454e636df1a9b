"""A person's word on held prices and refused readings, kept in <home>/reviews.json."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pipeline.contracts.errors import GpufareError
from pipeline.contracts.offer import Offer
from pipeline.gates.prices import PriceKey, is_same_figure, price_key
from pipeline.home.disk import replacing
from pipeline.home.paths import Home

Verdict = Literal["believed", "refused"]


class Review(BaseModel):
    """A verdict on one price of one offer, or, without a ``price``, on a source's reading of ``day``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    day: date
    verdict: Verdict
    why: str = ""
    price_key: tuple[Any, ...] = ()
    price: Decimal | None = None
    currency: str | None = None


_REVIEWS = TypeAdapter(tuple[Review, ...])


class ReviewsError(GpufareError):
    """The file of reviews cannot be used; the message gives its path and the remedy."""


@dataclass(frozen=True, slots=True)
class Reviews:
    """A source's reviews, oldest first; a later review of a price replaces an earlier one."""

    found: Sequence[Review] = ()

    def of_price(self, offer: Offer) -> Verdict | None:
        """Return a person's verdict on an offer's price; None if nobody reviewed it."""
        key = price_key(offer)
        return next((each.verdict for each in reversed(self.found) if _is_about(each, key, offer)), None)

    def of_reading(self, day: date) -> Verdict | None:
        """Return a person's verdict on the reading of a day as a whole; None if nobody reviewed it."""
        whole = (each for each in reversed(self.found) if each.price is None and each.day == day)
        return next((each.verdict for each in whole), None)


NO_REVIEWS = Reviews()


def _is_about(review: Review, key: PriceKey, offer: Offer) -> bool:
    return (
        review.price is not None
        and review.price_key == key
        and review.currency == offer.native_currency
        and is_same_figure(review.price, offer.native_price)
    )


def read_reviews(home: Home, source: str | None = None) -> Reviews:
    """Return a home's reviews, optionally those of one source. Raises ReviewsError."""
    try:
        found = _REVIEWS.validate_json(home.reviews.read_bytes())
    except FileNotFoundError:
        return Reviews()
    except (OSError, ValidationError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise ReviewsError(
            f"{home.reviews} cannot be used ({what}): mend it, or delete it and review the prices again"
        ) from error
    return Reviews(tuple(each for each in found if source in (None, each.source)))


def add_reviews(home: Home, new: Sequence[Review]) -> None:
    """Add reviews to a home's file. Raises ReviewsError and UnwritableError."""
    reviews = (*read_reviews(home).found, *new)
    with replacing(home.reviews) as temporary:
        temporary.write_bytes(_REVIEWS.dump_json(reviews, indent=1))
