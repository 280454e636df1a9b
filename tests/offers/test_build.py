"""From listings to offers: all of an offer, every reason for a reject, and every bound on both sides."""

import csv
from ast import literal_eval
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pipeline.catalog.source_config import LabelLookup, SourceConfig, source_config
from pipeline.contracts.listing import ReaderWarning, Reject, SourceChangedError
from pipeline.contracts.offer import Offer
from pipeline.contracts.rates import Rate
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.offers.build import MAX_RAW_CHARACTERS, MAX_REJECTS, build_offers
from pipeline.parsing.printable import MAX_CHARACTERS
from tests.offers.builders import CAPTURED, config, listing
from tests.record.builders import reject

EURO = Rate(Decimal("1.17"), date(2026, 8, 21))


def of_attributes(**changes: Any) -> SourceConfig:
    """Return a source whose yaml states attributes of all its offers."""
    return config().model_copy(update={"attributes": config().attributes.model_copy(update=changes)})


SOURCES: Mapping[str, SourceConfig] = {
    "acme": config(),
    "bounds": config(max_gpu_count=256, usd_per_gpu_hour=(Decimal("0.5"), Decimal(8))),
    "sizes": config(known_sizes=True),
    "community": of_attributes(tier_class="community", tier="secure"),
    "yen": config().model_copy(update={"currency": "JPY"}),
    "imported": config().model_copy(update={"kind": "imported"}),
    "explained": config().model_copy(
        update={"lookups": {"Flavor 1": LabelLookup(means="L40S", why="a footnote")}}
    ),
    "ovh": source_config("ovh"),
}


def facts_of(cell: str) -> dict[str, Any]:
    """Return what differs from a listing of an H100, given as name=value; name=value."""
    facts: dict[str, Any] = {}
    for name, _, text in (each.partition("=") for each in cell.split("; ") if each):
        try:
            facts[name] = literal_eval(text)
        except (ValueError, SyntaxError):
            facts[name] = text
    if "native_price" in facts:
        facts["native_price"] = Decimal(str(facts["native_price"]))
    if "gpu_id" in facts:
        facts["context"] = {"gpu_id": facts.pop("gpu_id")}
    if "host" in facts:
        facts["answer"] = replace(CAPTURED, url=f"https://{facts.pop('host')}/catalog")
    return facts


def test_listings_are_the_offers_and_rejects_of_the_table() -> None:
    """An offer is given by its card or its match, its number of GPUs, the evidence for it, and its class."""
    wrong = []
    with Path(__file__).with_name("listings.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            built = build_offers([listing(**facts_of(row["listing"]))], SOURCES[row["source"]])
            found = [
                f"{o.gpu_id or o.match_status} {o.gpu_count:g} {o.size_evidence} {o.tier_class}"
                for o in built.offers
            ]
            found += [f"{each.reason.value}: {each.detail}" for each in built.rejects]
            wrong += [] if found == [row["answer"]] else [(row, found)]
    assert wrong == []


def test_a_text_has_at_most_so_many_characters() -> None:
    longest = "x" * MAX_CHARACTERS
    assert [offer.region for offer in build_offers([listing(region=longest)], config()).offers] == [longest]
    too_long = longest + "\n"
    for column, changes in (("region", {"region": too_long}), ("note", {"context": {"note": too_long}})):
        (found,) = build_offers([listing(**changes)], config()).rejects
        text = f"{column} has {MAX_CHARACTERS + 1} characters: {'x' * 80!r}…"
        assert (found.reason, found.detail) == (RejectReason.TEXT_TOO_LONG, text)


def test_all_of_an_offer() -> None:
    """What the row states, or else the yaml; with the card, the place, and the price in dollars."""
    stated: dict[str, Any] = {
        "instance_type": "h100.4", "gpu_counts": (4, 8), "price_kind": "reserved", "term_days": 365,
        "region": "Oslo 1", "country": "NO", "minimum_seconds": 60, "max_run_hours": 24.0, "available": True,
        "interconnect": "InfiniBand", "node_network_gbps": 3200.0, "vcpus": 64.0, "ram_gib": 512.0,
        "local_disk_gb": 2000.0, "storage_usd_per_gb_month": Decimal("0.1"),
        "download_usd_per_gb": Decimal("0.2"), "reliability": 0.99, "effective_from": date(2026, 9, 1),
    }  # fmt: skip
    attributes = {
        "max_nodes": 4,
        "egress_usd_per_gb": Decimal("0.3"),
        "tier": "secure",
        "region": "elsewhere",
    }
    terms = {"increment_seconds": 1, "minimum_seconds": 9, "min_gpu_count": 2}
    billing = config().billing.model_copy(update=terms)
    source = of_attributes(**attributes).model_copy(update={"billing": billing, "currency": "EUR"})
    row = listing("8", gpu_count=4, native_currency="EUR", native_unit="instance_hour", **stated)
    page = "https://acme.example/h100"
    row = replace(row, upstream_provider="Owner", source_url=page, raw_label=" H100 SXM\n")
    (offer,) = build_offers([row], source, {"EUR": EURO}).offers
    assert offer == Offer(
        **stated | attributes | {"region": "Oslo 1", "continent": "europe"},
        source="acme", provider="Owner", raw_label="H100 SXM", gpu_id="h100-sxm-80gb",
        match_status="matched", match_rule="label+form_factor+usual_memory", match_confidence="usual",
        candidates="h100-sxm-80gb", gpu_count=4, size_evidence="offered", tier_class="dedicated",
        usd_per_hour=Decimal("9.36"), usd_per_gpu_hour=Decimal("2.34"), native_price=Decimal(8),
        native_currency="EUR", native_unit="instance_hour", fx_rate=EURO.usd, fx_date=EURO.day,
        billing_increment_seconds=1, min_gpu_count=2, source_url=page,
        observed_at=CAPTURED.observed_at, capture_sha256=CAPTURED.sha256,
    )  # fmt: skip
    (plain,) = build_offers([listing()], config(), {"EUR": EURO, "USD": EURO}).offers
    from_yaml = ("Acme", CAPTURED.url, Decimal("2.00"))
    assert (plain.provider, plain.source_url, plain.usd_per_gpu_hour) == from_yaml
    assert (plain.fx_rate, plain.fx_date, plain.min_gpu_count) == (None, None, None)
    (unconverted,) = build_offers([row], source).offers
    assert (unconverted.usd_per_hour, unconverted.usd_per_gpu_hour, unconverted.fx_rate) == (None, None, None)
    (card,) = build_offers([listing(raw_label="H100_80GB", context={"form_factor": "PCIe"})], config()).offers
    assert card.gpu_id == "h100-pcie-80gb"
    (third,) = build_offers([listing("1", gpu_count=3, native_unit="instance_hour")], config()).offers
    assert third.usd_per_gpu_hour == Decimal("0.33333333")


def test_the_place_of_a_source_is_that_of_its_offers() -> None:
    listings = [listing(), listing("3", region="NORTH AMERICA")]
    ours, elsewhere = build_offers(listings, of_attributes(country="NO")).offers
    assert (ours.country, ours.continent) == ("NO", "europe")
    assert (elsewhere.country, elsewhere.continent) == (None, None)


def test_all_of_a_reject() -> None:
    row = listing("2.00", gpu_count=0, instance_type="h", region="eu", tier="secure")
    raw = {"raw_label": "H100 SXM", "instance_type": "h", "gpu_count": 0, "price_kind": "on_demand",
           "region": "eu", "tier": "secure", "native_unit": "gpu_hour", "native_price": "2.00",
           "native_currency": "USD"}  # fmt: skip
    detail = "'H100 SXM' has 0 GPUs"
    reason = RejectReason.UNKNOWN_GPU_COUNT
    expected = reject(reason=reason, detail=detail, raw=raw)
    assert build_offers([row], config()).rejects == [expected]
    long = MAX_RAW_CHARACTERS
    texts = {"x" * long: "x" * long, "x" * (long + 1): "x" * long + "…", "a\x07": "a\ufffd"}
    for text, kept in texts.items():
        rows = [Reject(RejectReason.NOT_OFFERED, text, raw, CAPTURED) for raw in (text, {text: [1]})]
        plain, in_a_mapping = build_offers(rows, config()).rejects
        assert (plain.raw, plain.detail) == (kept, kept.removesuffix("…"))
    assert in_a_mapping.raw == {"a\ufffd": [1]}


def test_a_flood_is_refused_without_reading_on() -> None:
    """A source may give twice the rows that are expected of it."""
    assert THRESHOLDS.flood_factor == 2
    with pytest.raises(SourceChangedError) as refused:
        build_offers((listing(region=f"{number}") for number in count()), config(rows_max=3))
    assert str(refused.value) == (
        "more than 6 offers, where acme is expected to have at most 3: reading stopped there. If the source "
        "has grown, raise rows_max in catalog/sources/acme.yaml"
    )
    assert len(build_offers([listing(region=f"{n}") for n in range(6)], config(rows_max=3)).offers) == 6


def test_rejects_are_kept_up_to_a_number_and_counted_beyond() -> None:
    rejects = (Reject(RejectReason.NOT_OFFERED, "", number, CAPTURED) for number in range(MAX_REJECTS + 2))
    built = build_offers([ReaderWarning("odd\x07"), *rejects], config())
    assert len(built.rejects) == MAX_REJECTS
    assert built.warnings == ["odd\ufffd", f"2 rejects more than the {MAX_REJECTS} that are kept"]


def test_two_rows_for_the_same_thing() -> None:
    """They differ in their provenance, and in whether they are available."""
    again = {"answer": replace(CAPTURED, sha256="1" * 64), "source_url": "https://acme.example/b"}

    def built(price: str, second: Mapping[str, Any], **both: Any) -> tuple[list[str | None], list[str]]:
        found = build_offers([listing(**both), listing(price, **both | second)], config())
        return [each.flag_reason for each in found.offers], [row.detail for row in found.rejects]

    assert built("2.00", again) == ([None], ["'H100 SXM' is listed twice at the same price"])
    assert built("2.00", again, tier="marketplace_verified") == ([None] * 2, [])
    assert built("2.00", {"available": True}) == ([None] * 2, [])
    flags: dict[str, dict[str, Any]] = {
        "conflicting_prices": {"instance_type": "h100.8", "region": "eu"},
        "coming_soon": {"flag_reason": "coming_soon"},
        "": {"tier": "marketplace_verified"},
    }
    for flag, both in flags.items():
        assert built("3.00", {"available": True}, **both) == ([flag or None] * 2, [])
    assert built("2.00", {"price_kind": "spot"}) == ([None, "spot_not_below_on_demand"], [])
