"""Turns a source's listings into offers: the GPU, the number of GPUs, and the price in dollars per hour.

Nothing is guessed: a listing whose price is not certain becomes a reject with a reason. A listing whose GPU
is not certain becomes an offer without ``gpu_id``, which is counted but kept out of every ranking.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from pipeline.catalog.machine_sizes import machine_size
from pipeline.catalog.places import place_of
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import (
    TIER_CLASSES,
    LabelKind,
    Listing,
    ReaderWarning,
    Reject,
    Row,
    SourceChangedError,
    TierClass,
)
from pipeline.contracts.offer import Built, Offer, RejectedRow, SizeEvidence
from pipeline.contracts.rates import ONE_DOLLAR, Rate
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.contradictions import flag_conflicting_prices, flag_contradictions
from pipeline.gates.prices import bounds_of, in_unexpected_currency
from pipeline.gates.reviews import NO_REVIEWS, Reviews
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.gpus import Identity, identify
from pipeline.gpus.catalogue import card_by_id
from pipeline.offers.money import usd_per_hour
from pipeline.parsing.prices import RowError
from pipeline.parsing.printable import MAX_CHARACTERS, printable, printable_json

MAX_RAW_CHARACTERS = 2_000
"""The most characters of a row's text that a reject keeps."""

MAX_REJECTS = 10_000
"""The most rejects kept per reading; a warning counts the rest. Azure's list, the longest, has fewer rows."""

_TEXTS = (
    "raw_label",
    "instance_type",
    "listing_id",
    "region",
    "country",
    "tier",
    "interconnect",
    "upstream_provider",
)
"""Columns of a listing that contain the page's own words."""

_STATED = Offer.model_fields.keys() & {field.name for field in fields(Listing)}
"""Columns of an offer that a listing states."""

_PROVENANCE = {"observed_at", "source_url", "capture_sha256", "listing_id"}
_PRICES = {"native_price", "usd_per_hour", "usd_per_gpu_hour"}

USD_DIGITS = Decimal("1e-8")


def build_offers(
    rows: Iterable[Row],
    config: SourceConfig,
    rates: Mapping[str, Rate] | None = None,
    reviews: Reviews = NO_REVIEWS,
    *,
    any_currency: bool = False,
) -> Built:
    """Return a reader's rows as offers, rejects and warnings.

    ``rates`` gives dollars per unit of a foreign currency; if a currency has no rate, ``usd_*`` is None and
    ``native_price`` is kept. ``reviews`` are a person's verdicts on contradictory prices.
    Prices in a currency that the source is not known to ask are rejected, except with ``any_currency``: then
    the gates compare the amounts. Errors raised by the reader are not caught. Raises SourceChangedError, and
    stops reading, if there are many more offers than expected.
    """
    built, unkept = Built(), 0
    rates = {**(rates or {}), "USD": ONE_DOLLAR}
    expects = None if any_currency else config.currencies_of
    seen: set[tuple[Any, ...]] = set()
    limit = THRESHOLDS.flood_factor * (config.expect.rows_max or THRESHOLDS.rows_max)
    for row in rows:
        found = _offer_or_reject(row, config, rates, seen, expects) if isinstance(row, Listing) else row
        if isinstance(found, Offer):
            built.offers.append(found)
        elif isinstance(found, ReaderWarning):
            built.warnings.append(printable(found.text))
        elif len(built.rejects) < MAX_REJECTS:
            built.rejects.append(_rejected(found, config))
        else:
            unkept += 1
        if len(built.offers) > limit:
            raise SourceChangedError(
                f"more than {limit} offers, where {config.name} is expected to have at most "
                f"{limit // THRESHOLDS.flood_factor}: reading stopped there. If the source has "
                f"grown, raise rows_max in catalog/sources/{config.name}.yaml"
            )
    if unkept:
        built.warnings.append(f"{unkept} rejects more than the {MAX_REJECTS} that are kept")
    offers = flag_conflicting_prices(built.offers, {*_PROVENANCE, *_PRICES, "available"})
    built.offers = flag_contradictions(offers, reviews)
    return built


def _offer_or_reject(
    row: Listing,
    config: SourceConfig,
    rates: Mapping[str, Rate],
    seen: set[tuple[Any, ...]],
    expects: Callable[[str], frozenset[str]] | None,
) -> Offer | Reject:
    """Return the offer or reject of a row; a machine repeated at the same price is a reject, except on a
    marketplace."""
    try:
        if expects and row.native_currency not in (expected := expects(row.answer.url)):
            detail = in_unexpected_currency(row.raw_label, row.native_currency, config.name, expected)
            raise RowError(RejectReason.UNEXPECTED_CURRENCY, detail)
        offer = _offer(_with_printable_text(row), config, rates)
        key = tuple(offer.model_dump(exclude=_PROVENANCE).values())
        if key in seen and not offer.is_marketplace:
            raise RowError(RejectReason.DUPLICATE, f"{offer.raw_label!r} is listed twice at the same price")
    except RowError as problem:
        return Reject(reason=problem.reason, detail=str(problem), raw=_as_raw(row), answer=row.answer)
    seen.add(key)
    return offer


def _with_printable_text(row: Listing) -> Listing:
    texts = {name: getattr(row, name) for name in _TEXTS}
    for name, text in (*texts.items(), *row.context.items()):
        if isinstance(text, str) and len(text) > MAX_CHARACTERS:
            detail = f"{name} has {len(text)} characters: {printable(text[:80])!r}…"
            raise RowError(RejectReason.TEXT_TOO_LONG, detail)
    cleaned: dict[str, Any] = {
        name: printable(text).strip() or None for name, text in texts.items() if isinstance(text, str)
    }
    if cleaned["raw_label"] is None:
        raise RowError(RejectReason.MISSING_FIELD, "the GPU is not stated")
    return replace(row, **cleaned)


def _offer(row: Listing, config: SourceConfig, rates: Mapping[str, Rate]) -> Offer:
    identity = _identify(row, config)
    if identity.status == "not_a_gpu":
        raise RowError(RejectReason.NOT_A_GPU, f"{row.raw_label!r} is not a GPU ({identity.rule})")
    gpu_count = row.gpu_count if row.gpu_count is not None else identity.gpu_count
    if gpu_count is not None and gpu_count >= 1 and (identity.gpu_fraction or 1) < 1:
        detail = (
            f"{row.raw_label!r} is {identity.gpu_fraction:g} of a GPU, but its row says {gpu_count:g} GPUs"
        )
        raise RowError(RejectReason.UNKNOWN_GPU_SHARE, detail)
    if gpu_count is None:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"nothing says how many GPUs {row.raw_label!r} has")
    if not 0 < gpu_count < math.inf:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"{row.raw_label!r} has {gpu_count:g} GPUs")
    most_gpus = config.expect.max_gpu_count or THRESHOLDS.max_gpu_count
    if gpu_count > most_gpus:
        raise RowError(
            RejectReason.IMPOSSIBLE_GPU_COUNT,
            f"{row.raw_label!r} has {gpu_count:g} GPUs; {config.name} is expected to have at most "
            f"{most_gpus}",
        )
    rate = rates.get(row.native_currency)
    try:
        if row.native_price <= 0:
            raise RowError(RejectReason.ZERO_PRICE, f"the price is {row.native_price}")
        price = row.native_price, row.native_unit, gpu_count, row.term_days
        usd = usd_per_hour(*price, rate.usd) if rate else None
        per_gpu = None if usd is None else (usd / Decimal(str(gpu_count))).quantize(USD_DIGITS)
    except (ArithmeticError, LookupError, ValueError) as error:
        detail = f"{row.native_price} {row.native_currency} per {row.native_unit}: {error!r}"
        raise RowError(RejectReason.UNREADABLE_PRICE, detail) from error
    _check_bounds(per_gpu, row, config)
    foreign = rate if row.native_currency != "USD" else None
    columns = _stated_columns(row, config)
    gpu_id = identity.gpu_id if identity.status == "matched" else None
    size_evidence = _size_evidence(row, gpu_count, config.name, gpu_id, columns)
    if config.expect.known_sizes and gpu_id and size_evidence == "assumed":
        detail = (
            f"{row.raw_label!r} has a price per GPU, and {config.name} sells whole machines: neither the "
            f"answer nor catalog/machine_sizes.csv says how many GPUs one with {gpu_id} has"
        )
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, detail)
    columns |= {
        "source": config.name,
        "provider": row.upstream_provider or config.provider,
        "gpu_id": gpu_id,
        "match_status": identity.status,
        "match_rule": identity.rule,
        "match_confidence": identity.confidence,
        "candidates": " ".join(identity.candidates) or None,
        "gpu_count": gpu_count,
        "size_evidence": size_evidence,
        "usd_per_hour": None if usd is None else usd.quantize(USD_DIGITS),
        "usd_per_gpu_hour": per_gpu,
        "fx_rate": foreign.usd if foreign else None,
        "fx_date": foreign.day if foreign else None,
        "observed_at": row.answer.observed_at,
        "source_url": row.source_url or row.answer.url,
        "capture_sha256": row.answer.sha256,
    }
    try:
        return Offer(**columns)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise RowError(RejectReason.INVALID_VALUE, f"{where}: {problem['msg']}") from error


def _stated_columns(row: Listing, config: SourceConfig) -> dict[str, Any]:
    """Return the columns as the row states them, or else as the yaml states them for all rows."""
    billing = config.billing
    columns = config.attributes.model_dump(include=_STATED) | {
        "billing_increment_seconds": billing.increment_seconds,
        "minimum_seconds": billing.minimum_seconds,
        "min_gpu_count": billing.min_gpu_count,
    }
    for name in _STATED:
        value = getattr(row, name)
        if value is not None or name not in columns:
            columns[name] = value
    place = place_of(config.name, columns["region"], columns["country"])
    of_source = config.attributes.tier_class
    return columns | {
        "country": place.country,
        "continent": place.continent,
        "tier_class": tier_class(columns["tier"], row.price_kind, of_source),
    }


def tier_class(tier: str | None, price_kind: str, of_source: TierClass) -> TierClass:
    """Return the class of an offer's tier: the class that its price kind implies, the class whose name the
    tier starts with (as in ``marketplace_verified``), or else the source's class."""
    if price_kind == "serverless":
        return "serverless"
    return next((each for each in TIER_CLASSES if tier and tier.startswith(each)), of_source)


def _size_evidence(
    row: Listing, gpu_count: float, source: str, gpu_id: str | None, stated: Mapping[str, Any]
) -> SizeEvidence:
    """Return "offered" if the answer names the machine or prices all of its GPUs together; a price per GPU
    does not show the machine's size. On a marketplace, each offer is one host's machine."""
    names_a_machine = row.instance_type is not None or row.gpu_counts is not None or gpu_count != 1
    if names_a_machine or not row.native_unit.startswith("gpu_") or stated["tier_class"] == "marketplace":
        return "offered"
    return "assumed" if machine_size(source, gpu_id, stated["tier"]) is None else "catalogued"


def _identify(row: Listing, config: SourceConfig) -> Identity:
    if config.kind == "imported":
        return _identify_imported(row)
    lookup = config.lookups.get(row.raw_label)
    return identify(
        lookup.means if lookup else row.raw_label,
        provider=config.name,
        kind="gpu_name" if lookup else row.label_kind,
        context=row.context,
        gpu_count=row.gpu_count,
    )


def _identify_imported(row: Listing) -> Identity:
    """Return the GPU of an imported row, by its gpu_id or by a label that names a GPU or a machine. A label
    that names a GPU and a machine with another GPU is ambiguous. Raises RowError for an unknown gpu_id."""
    if stated := row.context.get("gpu_id"):
        if (card := card_by_id().get(str(stated))) is None:
            raise RowError(RejectReason.INVALID_VALUE, f"gpu_id {stated!r} is not in the catalogue")
        return Identity.of(card, rule="gpu_id")
    provider = row.upstream_provider or ""
    kinds: tuple[LabelKind, ...] = ("gpu_name", "instance_type")
    found = [identify(row.raw_label, provider=provider, kind=kind, gpu_count=row.gpu_count) for kind in kinds]
    matched = {each.gpu_id: each for each in found if each.status == "matched"}
    if len(matched) > 1:
        candidates = tuple(str(gpu_id) for gpu_id in matched)
        return replace(found[0], status="ambiguous", gpu_id=None, confidence="none", candidates=candidates)
    return next(iter(matched.values()), found[0])


def _check_bounds(usd_per_gpu_hour: Decimal | None, row: Listing, config: SourceConfig) -> None:
    """Raise RowError for a price outside the source's bounds, which are inclusive."""
    low, high = bounds_of(config)
    if usd_per_gpu_hour is not None and not low <= usd_per_gpu_hour <= high:
        raise RowError(
            RejectReason.PRICE_OUT_OF_BOUNDS,
            f"{row.raw_label!r} at {usd_per_gpu_hour.normalize():f} USD per GPU-hour; "
            f"{config.name} is expected between {low} and {high}",
        )


def _as_raw(row: Listing) -> dict[str, Any]:
    shown = ("raw_label", "instance_type", "gpu_count", "price_kind", "region", "tier", "native_unit")
    raw: dict[str, Any] = {name: getattr(row, name) for name in shown}
    return raw | {"native_price": str(row.native_price), "native_currency": row.native_currency}


def _rejected(reject: Reject, config: SourceConfig) -> RejectedRow:
    return RejectedRow(
        source=config.name,
        reason=reject.reason,
        detail=printable(reject.detail[:MAX_RAW_CHARACTERS]),
        raw=_bounded(reject.raw),
        observed_at=reject.answer.observed_at,
        source_url=reject.answer.url,
        capture_sha256=reject.answer.sha256,
    )


def _bounded(raw: Any) -> Any:
    text = str(raw)
    return (
        printable_json(raw) if len(text) <= MAX_RAW_CHARACTERS else printable(text[:MAX_RAW_CHARACTERS]) + "…"
    )
