"""A person's word on held prices and refused readings, kept in <home>/reviews.json."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pipeline.contracts.errors import GpufareError
from pipeline.contracts.offer import Offer
from pipeline.gates.prices import is_same_figure, price_key
from pipeline.home.disk import choices_lock, replacing
from pipeline.home.paths import Home

Verdict = Literal["believed", "refused"]


class Review(BaseModel):
    """A verdict on one price of one offer, or, without a ``price``, on a source's reading of ``day``, whose
    answers have the hash ``sha256``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    day: date
    verdict: Verdict
    why: str = ""
    sha256: str | None = None
    price_key: tuple[Any, ...] = ()
    price: Decimal | None = None
    currency: str | None = None


_REVIEWS = TypeAdapter(tuple[Review, ...])


class ReviewsError(GpufareError):
    """The file of reviews cannot be used; the message gives its path and the remedy."""


@dataclass(frozen=True)
class Reviews:
    """A source's reviews, oldest first; a later review of a price replaces an earlier one."""

    found: Sequence[Review] = ()

    @cached_property
    def _by_offer(self) -> Mapping[tuple[Any, ...], Sequence[Review]]:
        """The reviews of prices, newest first, by the offer's key and currency."""
        groups: dict[tuple[Any, ...], list[Review]] = defaultdict(list)
        for each in reversed(self.found):
            if each.price is not None:
                groups[each.price_key, each.currency].append(each)
        return groups

    def of_price(self, offer: Offer) -> Verdict | None:
        """Return a person's verdict on an offer's price; None if nobody reviewed it."""
        about = self._by_offer.get((price_key(offer), offer.native_currency), ()) if self.found else ()
        return next(
            (
                each.verdict
                for each in about
                if each.price is not None and is_same_figure(each.price, offer.native_price)
            ),
            None,
        )

    def of_reading(self, sha256: str | None) -> Verdict | None:
        """Return a person's verdict on the reading of answers with a hash; None if nobody reviewed it."""
        whole = (each for each in reversed(self.found) if each.price is None and each.sha256 == sha256)
        return next((each.verdict for each in whole), None) if sha256 else None

    @property
    def usual_since(self) -> date:
        """The day of the last reading that a person confirmed as a whole: what was usual before no longer
        is."""
        whole = (each.day for each in self.found if each.price is None and each.verdict == "believed")
        return max(whole, default=date.min)


NO_REVIEWS = Reviews()


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
    with choices_lock(home):
        reviews = (*read_reviews(home).found, *new)
        with replacing(home.reviews) as temporary:
            temporary.write_bytes(_REVIEWS.dump_json(reviews, indent=1))
