"""From listings to offers: all of an offer, every reason for a reject, and every bound on both sides."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from pipeline.catalog.source_config import LabelLookup, SourceConfig, source_config
from pipeline.contracts.listing import ReaderWarning, Reject, SourceChangedError
from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.rates import Rate
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.offers.build import MAX_RAW_CHARACTERS, MAX_REJECTS, build_offers, tier_class
from pipeline.parsing.printable import MAX_CHARACTERS
from tests.offers.builders import CAPTURED, config, listing

EURO = Rate(Decimal("1.17"), date(2026, 8, 21))


def rejected(source: SourceConfig | None = None, price: str = "2.00", **changes: Any) -> str:
    """Return the reason and the detail of a listing's reject; '' if it becomes an offer."""
    built = build_offers([listing(price, **changes)], source or config(), {"EUR": EURO})
    return "; ".join(f"{row.reason.value}: {row.detail}" for row in built.rejects)


def of_attributes(**changes: Any) -> SourceConfig:
    """Return a source whose yaml states attributes of all its offers."""
    return config().model_copy(update={"attributes": config().attributes.model_copy(update=changes)})


def test_all_of_an_offer() -> None:
    """What the row states, or else the yaml; with the card, the place, and the price in dollars."""
    stated: dict[str, Any] = {
        "instance_type": "h100.4",
        "gpu_counts": (4, 8),
        "price_kind": "reserved",
        "term_days": 365,
        "region": "Oslo 1",
        "country": "NO",
        "minimum_seconds": 60,
        "max_run_hours": 24.0,
        "available": True,
        "interconnect": "InfiniBand",
        "node_network_gbps": 3200.0,
        "vcpus": 64.0,
        "ram_gib": 512.0,
        "local_disk_gb": 2000.0,
        "storage_usd_per_gb_month": Decimal("0.1"),
        "download_usd_per_gb": Decimal("0.2"),
        "reliability": 0.99,
        "effective_from": date(2026, 9, 1),
    }
    billing = config().billing.model_copy(
        update={"increment_seconds": 1, "minimum_seconds": 9, "min_gpu_count": 2}
    )
    attributes = {
        "max_nodes": 4,
        "egress_usd_per_gb": Decimal("0.3"),
        "tier": "secure",
        "region": "elsewhere",
    }
    source = of_attributes(**attributes).model_copy(update={"billing": billing, "currency": "EUR"})
    row = listing("8", gpu_count=4, native_currency="EUR", native_unit="instance_hour", **stated)
    row = replace(
        row, upstream_provider="Owner", source_url="https://acme.example/h100", raw_label=" H100 SXM\n"
    )
    (offer,) = build_offers([row], source, {"EUR": EURO}).offers
    assert offer == Offer(
        **stated | attributes | {"region": "Oslo 1", "continent": "europe"},
        source="acme",
        provider="Owner",
        raw_label="H100 SXM",
        gpu_id="h100-sxm-80gb",
        match_status="matched",
        match_rule="label+form_factor+usual_memory",
        match_confidence="usual",
        candidates="h100-sxm-80gb",
        gpu_count=4,
        size_evidence="offered",
        usd_per_hour=Decimal("9.36"),
        usd_per_gpu_hour=Decimal("2.34"),
        native_price=Decimal(8),
        native_currency="EUR",
        native_unit="instance_hour",
        billing_increment_seconds=1,
        min_gpu_count=2,
        tier_class="dedicated",
        fx_rate=EURO.usd,
        fx_date=EURO.day,
        observed_at=CAPTURED.observed_at,
        source_url="https://acme.example/h100",
        capture_sha256=CAPTURED.sha256,
    )
    (plain,) = build_offers([listing()], config(), {"EUR": EURO, "USD": EURO}).offers
    assert (plain.provider, plain.source_url, plain.usd_per_gpu_hour) == (
        "Acme",
        CAPTURED.url,
        Decimal("2.00"),
    )
    assert (plain.fx_rate, plain.fx_date, plain.min_gpu_count) == (None, None, None)
    (unconverted,) = build_offers([row], source).offers
    assert (unconverted.usd_per_hour, unconverted.usd_per_gpu_hour, unconverted.fx_rate) == (None, None, None)
    (third,) = build_offers([listing("1", gpu_count=3, native_unit="instance_hour")], config()).offers
    assert third.usd_per_gpu_hour == Decimal("0.33333333")


def test_the_place_of_a_source_is_that_of_its_offers() -> None:
    ours, elsewhere = build_offers(
        [listing(), listing("3", region="NORTH AMERICA")], of_attributes(country="NO")
    ).offers
    assert (ours.country, ours.continent) == ("NO", "europe")
    assert (elsewhere.country, elsewhere.continent) == (None, None)


def test_the_gpu_of_an_open_label_is_left_open() -> None:
    rows = [listing(raw_label="A100", gpu_count=2), listing(raw_label="X900")]
    open_one, unknown = build_offers(rows, config()).offers
    assert (open_one.gpu_id, open_one.match_status, open_one.match_confidence) == (None, "ambiguous", "none")
    assert (open_one.candidates or "").split()[:2] == ["a100-pcie-40gb", "a100-sxm-40gb"]
    assert (unknown.gpu_id, unknown.match_status, unknown.candidates) == (None, "unknown", None)


def test_a_label_is_read_with_its_columns_its_kind_and_what_the_source_means_by_it() -> None:
    explained = {
        "Flavor 1": LabelLookup(means="L40S", why="a footnote"),
        "A100": LabelLookup(means="A100 80GB", why="-"),
    }
    source = config().model_copy(update={"lookups": explained})
    rows = {
        "h100-pcie-80gb": listing(raw_label="H100_80GB", context={"form_factor": "PCIe"}),
        "h100-sxm-80gb": listing(raw_label="p5.48xlarge", label_kind="instance_type", gpu_count=None),
        "l40s": listing(raw_label="Flavor 1", label_kind="instance_type"),
        "a100-80gb": listing(raw_label="A100"),
    }
    found = {gpu_id: build_offers([row], source).offers[0] for gpu_id, row in rows.items()}
    assert {each.gpu_id for each in found.values()} == rows.keys()
    assert (found["h100-sxm-80gb"].gpu_count, found["l40s"].raw_label) == (8, "Flavor 1")
    host = {"raw_label": "L40S-48GB-64GB", "label_kind": "instance_type"}
    kinds = build_offers(
        [listing(**host), listing("3", **host | {"label_kind": "gpu_name"})], config()
    ).offers
    assert [each.gpu_id for each in kinds] == ["l40s", None]


def test_the_gpu_of_an_imported_row() -> None:
    """By its gpu_id, or else by a label of a GPU or a machine; not where the two disagree."""
    source = config().model_copy(update={"kind": "imported"})

    def built(**changes: Any) -> Offer:
        (found,) = build_offers([listing(**{"upstream_provider": "Lambda"} | changes)], source).offers
        return found

    stated = built(raw_label="whatever", context={"gpu_id": "l40s"})
    assert (stated.gpu_id, stated.match_rule, stated.match_confidence) == ("l40s", "gpu_id", "certain")
    assert (
        rejected(source, context={"gpu_id": "l41"}) == "invalid_value: gpu_id 'l41' is not in the catalogue"
    )
    assert built(raw_label="gpu_8x_a100", gpu_count=8).gpu_id == "a100-sxm-40gb"
    assert built(raw_label="gpu_8x_a100", gpu_count=8, upstream_provider=None).gpu_id is None
    assert built(raw_label="L40S").gpu_id == "l40s"
    assert built(raw_label="Flavor 7").match_status == "unknown"
    assert rejected(source, raw_label="gpu_8x_a100", gpu_count=None, upstream_provider="LAMBDA") == ""


REJECTS: Mapping[str, tuple[dict[str, Any], str]] = {
    "a long text": (
        {"region": "x" * (MAX_CHARACTERS + 1)},
        f"text_too_long: region has 301 characters: '{'x' * 80}'…",
    ),
    "a long column": (
        {"context": {"note": "y\n" * MAX_CHARACTERS}},
        f"text_too_long: note has 600 characters: '{'y ' * 40}'…",
    ),
    "no label": ({"raw_label": " \n"}, "missing_field: the GPU is not stated"),
    "no GPU": ({"raw_label": "Xeon"}, "not_a_gpu: 'Xeon' is not a GPU (not_a_gpu)"),
    "a slice as a whole": (
        {"raw_label": "H100 SXM5 MIG 40GB"},
        "unknown_gpu_share: 'H100 SXM5 MIG 40GB' is 0.5 of a GPU, but its row says 1 GPUs",
    ),
    "no count": ({"gpu_count": None}, "unknown_gpu_count: nothing says how many GPUs 'H100 SXM' has"),
    "no GPUs": ({"gpu_count": 0}, "unknown_gpu_count: 'H100 SXM' has 0 GPUs"),
    "infinite GPUs": ({"gpu_count": float("inf")}, "unknown_gpu_count: 'H100 SXM' has inf GPUs"),
    "too many GPUs": (
        {"gpu_count": 73},
        "impossible_gpu_count: 'H100 SXM' has 73 GPUs; acme is expected to have at most 72",
    ),
    "another currency": (
        {"native_currency": "EUR"},
        "unexpected_currency: 'H100 SXM' is in EUR; acme is expected to ask USD",
    ),
    "no price": ({"price": "0"}, "zero_price: the price is 0"),
    "a negative price": ({"price": "-1"}, "zero_price: the price is -1"),
    "no number": (
        {"price": "NaN"},
        "unreadable_price: NaN USD per gpu_hour: InvalidOperation([<class 'decimal.InvalidOperation'>])",
    ),
    "no term": (
        {"native_unit": "instance_term"},
        "unreadable_price: 2.00 USD per instance_term: ValueError('a price for a whole term needs term_days "
        "above 0, not None')",
    ),
    "below the bounds": (
        {"price": "0.0099"},
        "price_out_of_bounds: 'H100 SXM' at 0.0099 USD per GPU-hour; acme is expected between 0.01 and 40",
    ),
    "above the bounds": (
        {"price": "40.10"},
        "price_out_of_bounds: 'H100 SXM' at 40.1 USD per GPU-hour; acme is expected between 0.01 and 40",
    ),
    "no possible value": (
        {"minimum_seconds": -1},
        "invalid_value: minimum_seconds: Input should be greater than or equal to 0",
    ),
}


def test_every_reason_for_a_reject() -> None:
    assert {name: rejected(**changes) for name, (changes, _) in REJECTS.items()} == {
        name: text for name, (_, text) in REJECTS.items()
    }


ACCEPTED: Mapping[str, dict[str, Any]] = {
    "the longest text": {"region": "x" * MAX_CHARACTERS},
    "part of a GPU": {"gpu_count": 0.25},
    "most GPUs": {"gpu_count": 72},
    "a slice": {"raw_label": "H100 SXM5 MIG 40GB", "gpu_count": None},
    "a slice by its share": {"raw_label": "H100 SXM5 MIG 40GB", "gpu_count": 0.5},
    "a slice of all": {"raw_label": "H100 SXM5 MIG 7g.80gb"},
    "the lowest price": {"price": "0.01"},
    "the highest price": {"price": "40.00"},
    "the highest price per GPU": {"price": "320", "gpu_count": 8, "native_unit": "instance_hour"},
}


def test_what_lies_on_a_bound_is_an_offer() -> None:
    assert {name: text for name, changes in ACCEPTED.items() if (text := rejected(**changes))} == {}


def test_the_yaml_overrides_bounds() -> None:
    source = config(max_gpu_count=256, usd_per_gpu_hour=(Decimal("0.5"), Decimal(8)))
    reasons = {
        (price, gpus): rejected(source, price, gpu_count=gpus).partition(":")[0]
        for price in ("0.49", "0.50", "8.00", "8.01")
        for gpus in (256, 257)
    }
    outside = "price_out_of_bounds"
    assert reasons == {
        **{(price, 257): "impossible_gpu_count" for price in ("0.49", "0.50", "8.00", "8.01")},
        **{("0.49", 256): outside, ("0.50", 256): "", ("8.00", 256): "", ("8.01", 256): outside},
    }


def test_prices_fit_their_column() -> None:
    """DECIMAL(18, 8), above zero. Yen are not converted here: the dollar bounds do not apply."""
    yen = config().model_copy(update={"currency": "JPY"})
    fits = {"0.00000001": True, "0.000000004": False, "9999999999": True, "10000000000": False}
    found = {price: rejected(yen, price, native_currency="JPY") for price in fits}
    assert {price: not text for price, text in found.items()} == fits
    assert all(text.startswith("invalid_value: native_price: ") for text in found.values() if text)


def test_each_of_several_price_lists_has_its_own_currency() -> None:
    ours, others = {"EUR": "api.ovh.com", "USD": "api.us.ovhcloud.com"}, ("USD", "EUR", "INR")
    expected = {(host, currency): ours[currency] == host if currency in ours else False
                for host in ours.values() for currency in others}  # fmt: skip
    expected |= {("saved.example", currency): currency != "INR" for currency in others}
    found = {}
    for host, currency in expected:
        answer = replace(CAPTURED, url=f"https://{host}/catalog")
        text = rejected(source_config("ovh"), native_currency=currency, answer=answer)
        found[host, currency] = "unexpected_currency" not in text
    assert found == expected
    saved = replace(CAPTURED, url="https://saved.example")
    assert rejected(source_config("ovh"), native_currency="INR", answer=saved).endswith("ask EUR or USD")
    facts = config().model_dump() | {"currencies": {"USD": "elsewhere.example"}}
    with pytest.raises(ValueError, match=r"currencies names hosts that are not asked: elsewhere\.example"):
        SourceConfig.model_validate(facts)


def test_all_of_a_reject() -> None:
    facts = {
        "observed_at": CAPTURED.observed_at,
        "source_url": CAPTURED.url,
        "capture_sha256": CAPTURED.sha256,
    }
    row = listing("2.00", gpu_count=0, instance_type="h", region="eu", tier="secure")
    raw = {"raw_label": "H100 SXM", "instance_type": "h", "gpu_count": 0, "price_kind": "on_demand",
           "region": "eu", "tier": "secure", "native_unit": "gpu_hour", "native_price": "2.00",
           "native_currency": "USD"}  # fmt: skip
    detail = "'H100 SXM' has 0 GPUs"
    assert build_offers([row], config()).rejects == [
        RejectedRow(source="acme", reason=RejectReason.UNKNOWN_GPU_COUNT, detail=detail, raw=raw, **facts)
    ]
    long = MAX_RAW_CHARACTERS
    texts = {"x" * long: "x" * long, "x" * (long + 1): "x" * long + "…", "a\x07": "a\ufffd"}
    for text, kept in texts.items():
        (reject,) = build_offers([Reject(RejectReason.NOT_OFFERED, text, text, CAPTURED)], config()).rejects
        assert (reject.raw, reject.detail) == (kept, kept.removesuffix("…"))
    (reject,) = build_offers(
        [Reject(RejectReason.NOT_OFFERED, "", {"a\x07": [1]}, CAPTURED)], config()
    ).rejects
    assert reject.raw == {"a\ufffd": [1]}


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


def test_the_class_of_a_tier() -> None:
    expected = {
        (None, "on_demand"): "community",
        ("secure", "on_demand"): "community",
        ("marketplace_verified", "spot"): "marketplace",
        ("dedicated", "on_demand"): "dedicated",
        ("marketplace", "serverless"): "serverless",
    }
    assert {each: tier_class(*each, "community") for each in expected} == expected
    community = of_attributes(tier_class="community", tier="secure")
    assert [each.tier_class for each in build_offers([listing()], community).offers] == ["community"]


def test_the_evidence_for_the_size_of_a_machine() -> None:
    shown: dict[str, tuple[dict[str, Any], str]] = {
        "a price per GPU": ({}, "assumed"),
        "a machine with a name": ({"instance_type": "h100.8", "gpu_count": 8}, "offered"),
        "a named machine of one": ({"instance_type": "h100.1"}, "offered"),
        "a price per GPU of eight": ({"gpu_count": 8}, "offered"),
        "a price for a whole machine": ({"native_unit": "instance_hour"}, "offered"),
        "a price per GPU next to its counts": ({"gpu_counts": (1, 2, 4)}, "offered"),
        "a host on a marketplace": ({"tier": "marketplace"}, "offered"),
    }
    found = {name: build_offers([listing(**facts)], config()).offers for name, (facts, _) in shown.items()}
    assert {name: offers[0].size_evidence for name, offers in found.items()} == {
        name: evidence for name, (_, evidence) in shown.items()
    }


def test_a_source_of_whole_machines_gives_no_offer_without_a_machine_size() -> None:
    source = config(known_sizes=True)
    assert rejected(source) == (
        "unknown_gpu_count: 'H100 SXM' has a price per GPU, and acme sells whole machines: neither the "
        "answer nor catalog/machine_sizes.csv says how many GPUs one with h100-sxm-80gb has"
    )
    assert rejected(source, gpu_count=8, instance_type="h100.8") == rejected(source, raw_label="X900") == ""
