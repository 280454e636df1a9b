"""An offer, a listing and a source of a made-up provider, with what a test changes in them."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import Evidence, Expectations, SourceConfig
from pipeline.contracts.listing import Answer, Listing
from pipeline.contracts.offer import Offer
from pipeline.offers.build import tier_class

CAPTURED = Answer("https://acme.example/prices", b"", datetime(2026, 8, 22, tzinfo=UTC), "0" * 64)


def offer(price: str = "2.00", **changes: Any) -> Offer:
    facts: dict[str, Any] = {
        "source": "acme", "provider": "Acme", "raw_label": "H100 SXM", "instance_type": None,
        "gpu_id": "h100-sxm-80gb", "match_status": "matched", "match_rule": "label",
        "match_confidence": "certain", "gpu_count": 1, "price_kind": "on_demand",
        "usd_per_hour": Decimal(price), "usd_per_gpu_hour": Decimal(price), "native_price": Decimal(price),
        "native_currency": "USD", "native_unit": "gpu_hour",
        "observed_at": CAPTURED.observed_at, "source_url": CAPTURED.url, "capture_sha256": CAPTURED.sha256,
    }  # fmt: skip
    facts |= changes
    facts.setdefault("tier_class", tier_class(facts.get("tier"), facts["price_kind"], "dedicated"))
    return Offer(**facts)


def config(**expect: Any) -> SourceConfig:
    return SourceConfig(
        name="acme", title="Acme", provider="Acme", homepage="https://acme.example", hosts=("acme.example",),
        evidence=Evidence(level="inferred", date=date(2026, 8, 22), note="made up"),
        expect=Expectations(**expect),
    )  # fmt: skip


def listing(price: str = "2.00", **changes: Any) -> Listing:
    facts: dict[str, Any] = {
        "raw_label": "H100 SXM", "gpu_count": 1, "price_kind": "on_demand", "native_price": Decimal(price),
        "native_currency": "USD", "native_unit": "gpu_hour", "answer": CAPTURED,
    }  # fmt: skip
    return Listing(**(facts | changes))
