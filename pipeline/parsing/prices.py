"""The prices of rows, or the reasons why rows have no price."""

from collections.abc import Collection, Iterable
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.text import HOURLY, UnreadableError, is_not_offered, is_starting_price, money, number

CURRENCIES = ("USD", "EUR", "GBP")

_T = TypeVar("_T")


class RowError(Exception):
    """A row cannot become a listing; the error gives the reject's reason and, as its message, the detail."""

    def __init__(self, reason: RejectReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason

    def reject(self, name: str, raw: Any, answer: Answer) -> Reject:
        """Return the row as a reject, whose detail begins with ``name``."""
        return Reject(self.reason, f"{name}: {self}", raw, answer)


def price_of(value: Any) -> Decimal:
    """Return the price, above zero, in a field of a JSON answer. Raises RowError if there is none."""
    if value is None or (isinstance(value, str) and is_not_offered(value)):
        raise RowError(RejectReason.NOT_OFFERED, f"no price is given: {value!r}")
    try:
        return _positive(number(value))
    except UnreadableError as error:
        raise RowError(RejectReason.UNREADABLE_PRICE, str(error)) from error


class CellPrice(NamedTuple):
    """A price shown on a page. ``flag_reason`` is set if the price is the lowest of several ("from $1.55"),
    because the page then does not state the price of the row's machine."""

    amount: Decimal
    currency: str
    flag_reason: FlagReason | None = None

    def listing(self, label: str, gpu_count: float | None, answer: Answer, **columns: Any) -> Listing:
        """Return the listing for the price: per hour of the whole machine, on demand and in its own currency
        unless ``columns`` say otherwise. A ``flag_reason`` in ``columns`` overrides that of the price."""
        usual = {
            "native_unit": "instance_hour",
            "price_kind": "on_demand",
            "native_currency": self.currency,
        }
        columns["flag_reason"] = columns.get("flag_reason") or self.flag_reason
        return Listing(
            raw_label=label,
            gpu_count=gpu_count,
            native_price=self.amount,
            answer=answer,
            **(usual | columns),
        )


def cell_price(
    text: str, units: Collection[str] = HOURLY, currencies: Iterable[str] = CURRENCIES
) -> CellPrice:
    """Return the price in a cell and its currency, which the cell must state. Raises RowError otherwise."""
    if is_not_offered(text):
        raise RowError(RejectReason.NOT_OFFERED, f"no price is given: {text!r}")
    refusals = []
    for currency in currencies:
        try:
            flag = FlagReason.STARTING_PRICE if is_starting_price(text) else None
            return CellPrice(_positive(money(text, currency, units)), currency, flag)
        except UnreadableError as error:
            refusals.append(str(error))
    raise RowError(RejectReason.UNREADABLE_PRICE, "; ".join(refusals))


def gpu_hour_row(
    label: str,
    kind: PriceKind,
    cell: str,
    raw: Any,
    answer: Answer,
    units: Collection[str] = HOURLY,
    **columns: Any,
) -> Listing | Reject:
    """Return the price per GPU-hour in a cell as a listing of one GPU, or a reject if it cannot be read."""
    try:
        price = cell_price(cell, units)
    except RowError as error:
        days = columns.get("term_days")
        detail = f"{label}, {kind}{f' for {days} days' if days else ''}: {error}"
        return Reject(error.reason, detail, raw, answer)
    return price.listing(label, 1, answer, price_kind=kind, native_unit="gpu_hour", **columns)


def agreed(prices: Iterable[_T]) -> _T:
    """Return the price that a source states in several places (an amount, or an amount and a currency).

    Raises RowError if the statements differ.
    """
    stated = list(dict.fromkeys(prices))
    if len(stated) != 1:
        raise RowError(
            RejectReason.CONFLICTING_PRICES, f"several prices for the same thing: {list(map(str, stated))}"
        )
    return stated[0]


def spot_flag(spot: Decimal, on_demand: Decimal | None) -> FlagReason | None:
    """Return a flag for a spot price that is not below its machine's on-demand price (if known)."""
    return FlagReason.SPOT_NOT_BELOW_ON_DEMAND if on_demand is not None and spot >= on_demand else None


def optional_number(value: Any) -> float | None:
    """Return a number that no price depends on; None if missing or unreadable."""
    try:
        return None if value is None else float(number(value))
    except UnreadableError:
        return None


def known(**columns: Any) -> dict[str, Any]:
    """Return the columns whose value is not None, 0 or empty."""
    return {name: value for name, value in columns.items() if value}


def is_available(free_count: Any) -> bool | None:
    """True if the number of free machines is above 0; None if the number is missing or unreadable."""
    count = optional_number(free_count)
    return None if count is None else count > 0


def _positive(price: Decimal) -> Decimal:
    if price <= 0:
        raise RowError(RejectReason.ZERO_PRICE, f"the price is {price}")
    return price
