"""Twenty-six ways in which real readers of price pages go wrong, each put into one source.

A misread edits the listings as the defective reader would have yielded them; where the page itself is not the
usual one, it edits the page, too. All other sources are read well.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pipeline.contracts.listing import Listing, Row

Edit = Callable[[Sequence[Row]], list[Row]]

HOURS_PER_MONTH = 730
EUR_PER_USD = Decimal("0.8548")


@dataclass(frozen=True)
class Misread:
    """One defect of one source's reader, and, where the page changed with it, what is on the page."""

    source: str
    listings: Edit
    page: Callable[[bytes], bytes] = lambda body: body


def each(
    change: Callable[[Listing], dict[str, Any] | None],
    *,
    kind: str | None = None,
    label: str = "",
    tier: str | None = None,
) -> Edit:
    """Change the listings of a kind, a tier and a label that contains ``label``; None removes a listing."""

    def edit(rows: Sequence[Row]) -> list[Row]:
        edited: list[Row] = []
        for row in rows:
            changes: dict[str, Any] | None = {}
            is_of_kind = isinstance(row, Listing) and kind in (None, row.price_kind)
            if is_of_kind and label in row.raw_label and tier in (None, row.tier):
                changes = change(row)
            edited += [] if changes is None else [replace(row, **changes)]
        return edited

    return edit


def times(factor: str, **which: Any) -> Edit:
    return each(lambda row: {"native_price": row.native_price * Decimal(factor)}, **which)


def listings_of(rows: Iterable[Row]) -> list[Listing]:
    return [row for row in rows if isinstance(row, Listing)]


def machine(row: Listing) -> tuple[Any, ...]:
    return (row.raw_label, row.instance_type, row.gpu_count, row.region)


def at_the_price_of(kind: str, of: str, *, drop: bool) -> Edit:
    """Listings of a kind get the price that the same machine has as another kind; with ``drop`` that kind's
    own listings are gone."""

    def edit(rows: Sequence[Row]) -> list[Row]:
        others = [row for row in listings_of(rows) if row.price_kind == of]
        prices = {(*machine(row), row.tier): row.native_price for row in others}
        changed = each(
            lambda row: {"native_price": prices.get((*machine(row), row.tier), row.native_price)}, kind=kind
        )(rows)
        return each(lambda _: None, kind=of)(changed) if drop else changed

    return edit


def exchanged_labels(one: str, other: str) -> Edit:
    """The whole labels, where each is all that names the card, with the columns that identify it."""

    def edit(rows: Sequence[Row]) -> list[Row]:
        contexts = {row.raw_label: row.context for row in listings_of(rows)}

        def change(row: Listing) -> dict[str, Any]:
            label = {one: other, other: one}.get(row.raw_label, row.raw_label)
            return {"raw_label": label, "context": contexts[label]}

        return each(change)(rows)

    return edit


def shifted_by_one(rows: Sequence[Row]) -> list[Row]:
    """Each card has the price of the next row of its price column."""
    listings = listings_of(rows)
    edited: list[Row] = [row for row in rows if not isinstance(row, Listing)]
    for kind in sorted({row.price_kind for row in listings}):
        column = [row for row in listings if row.price_kind == kind]
        for row, following in zip(column, [*column[1:], column[0]], strict=True):
            edited.append(replace(row, native_price=following.native_price))
    return edited


def swapped_with_longest_term(rows: Sequence[Row]) -> list[Row]:
    """The cells of the on-demand price and of the longest term are swapped in each row."""
    longest: dict[Any, Listing] = {}
    for row in sorted(listings_of(rows), key=lambda row: row.term_days or 0):
        if row.price_kind == "reserved":
            longest[machine(row)] = row
    on_demand = {machine(row): row for row in listings_of(rows) if row.price_kind == "on_demand"}

    def change(row: Listing) -> dict[str, Any]:
        of_term, of_hour = longest.get(machine(row)), on_demand.get(machine(row))
        if of_term is None or of_hour is None:
            return {}
        if row.price_kind == "on_demand":
            return {"native_price": of_term.native_price}
        is_longest = row.price_kind == "reserved" and row.term_days == of_term.term_days
        return {"native_price": of_hour.native_price} if is_longest else {}

    return each(change)(rows)


def lowest_price_for_all(rows: Sequence[Row]) -> list[Row]:
    lowest = min(row.native_price for row in listings_of(rows) if row.price_kind == "on_demand")
    return each(lambda _: {"native_price": lowest}, kind="on_demand")(rows)


# Verda's prices per GPU-hour three months before the sample day, as a hand-collected list of 2026-05-24 has
# them (src/data/offerings.json of the public repository tardellirs/gpu-pricing).
VERDA_IN_MAY = {
    "on_demand": {
        "V100": "0.14", "A6000": "0.49", "A100 SXM4 40": "0.72", "6000 Ada": "0.83", "L40S": "0.91",
        "A100 SXM4 80": "1.29", "RTX PRO 6000": "1.69", "H100": "2.29", "H200": "3.39", "B200": "4.89",
        "B300": "6.99", "GB300": "7.99",
    },
    "spot": {
        "V100": "0.05", "A6000": "0.17", "A100 SXM4 40": "0.25", "6000 Ada": "0.29", "L40S": "0.32",
        "A100 SXM4 80": "0.45", "RTX PRO 6000": "0.59", "H100": "0.80", "H200": "1.19", "B200": "1.71",
        "B300": "2.45", "GB300": "2.80",
    },
}  # fmt: skip


def verda_in_may(row: Listing) -> dict[str, Any] | None:
    prices = VERDA_IN_MAY.get(row.price_kind, {})
    names = [name for name in prices if name in row.raw_label]
    if not names:
        return None
    price = Decimal(prices[max(names, key=len)])
    whole = row.native_unit.startswith("instance")
    return {"native_price": price * Decimal(str(row.gpu_count)) if whole and row.gpu_count else price}


def page_in_euros(body: bytes) -> bytes:
    return body.replace(b"$", "€".encode()).replace(b"USD", b"EUR")


def one_gpu(row: Listing) -> dict[str, Any]:
    """The machine's price taken for that of one of its GPUs."""
    return {"gpu_count": 1, "context": {}, "vcpus": None, "ram_gib": None, "instance_type": None}


MISREADS: dict[str, Misread] = {
    "all prices of a bulk source divided by ten": Misread("azure", times("0.1")),
    "one card x10": Misread("runpod", times("10", label="A100-SXM4-80GB", tier="community")),
    "one card halved": Misread("lambda", times("0.5", kind="on_demand", label="H100 SXM")),
    "one card quartered": Misread("hyperstack", times("0.25", kind="on_demand", label="H100 SXM")),
    "one card x4": Misread("together", times("4", kind="on_demand", label="H100")),
    "spot price as on-demand": Misread("coreweave", at_the_price_of("on_demand", "spot", drop=True)),
    "missing spot mark": Misread("azure", each(lambda _: {"price_kind": "on_demand"}, kind="spot")),
    "six-month price as on-demand": Misread("runpod", at_the_price_of("on_demand", "reserved", drop=False)),
    "H100 and A100 swapped": Misread("hyperstack", exchanged_labels("NVIDIA H100 SXM", "NVIDIA A100 SXM")),
    "H100 and RTX 4090 swapped": Misread(
        "runpod", exchanged_labels("NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090")
    ),
    "dollars on a page become euros": Misread(
        "together", each(lambda _: {"native_currency": "EUR"}), page_in_euros
    ),
    "euros labelled dollars": Misread(
        "ovh", each(lambda _: {"native_currency": "USD"}), lambda body: body.replace(b'"EUR"', b'"USD"')
    ),
    "euros read as dollars": Misread("nebius", times(str(EUR_PER_USD)), page_in_euros),
    "dollars read as cents": Misread("aws", times("0.01")),
    "price of a month as of an hour": Misread("digitalocean", times(str(HOURS_PER_MONTH), kind="on_demand")),
    "price of 8 GPUs as of one": Misread("coreweave", each(one_gpu, kind="on_demand")),
    "price of one GPU as of the machine": Misread(
        "lambda", each(lambda _: {"native_unit": "instance_hour"}, kind="on_demand")
    ),
    "H100 PCIe as SXM": Misread(
        "lambda", each(lambda _: {"raw_label": "NVIDIA H100 SXM"}, label="H100 PCIe")
    ),
    "A100 40 GB as 80 GB": Misread(
        "runpod",
        each(lambda row: {"raw_label": row.raw_label.replace("40GB", "80GB"), "context": {}}, label="A100"),
    ),
    "column shifted by one": Misread("crusoe", shifted_by_one),
    "price of a CPU machine on a GPU": Misread(
        "vultr", each(lambda _: {"native_price": Decimal("0.286")}, label="L40S")
    ),
    "decimal comma as thousands": Misread("scaleway", times("100", label="L40S")),
    "last digit of the price lost": Misread(
        "oci", each(lambda row: {"native_price": row.native_price / (10 if row.native_price >= 10 else 1)})
    ),
    "reserved and on-demand swapped": Misread("gcp", swapped_with_longest_term),
    "lowest price for all cards": Misread("together", lowest_price_for_all),
    "stale page of three months ago": Misread("verda", each(verda_in_may)),
}
