"""The offer: one price for one kind of machine, as one source showed it at one moment.

The fields below limit the values that an offer's columns may take. sql/schema gives the columns' types and
meanings; tests check that the two agree in names, order, types, allowed values and NOT NULL.
"""

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from pipeline.contracts.listing import NativeUnit, PriceKind, TierClass
from pipeline.contracts.reject_reasons import RejectReason

MatchStatus = Literal["matched", "ambiguous", "unknown", "not_a_gpu"]
MatchConfidence = Literal["certain", "usual", "none"]
SizeEvidence = Literal["offered", "catalogued", "assumed"]

Continent = Literal["africa", "antarctica", "asia", "europe", "north_america", "oceania", "south_america"]

MIN_PRICE = Decimal("1e-8")
MAX_MONEY = Decimal(10) ** 10
"""The smallest price above zero, and the smallest amount too large for a column of type DECIMAL(18, 8)."""

MAX_INTEGER = 2**31 - 1
"""The largest value of an INTEGER column."""

Money = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
"""A Decimal in Python, Parquet and SQL; a plain number in JSON lines."""

Price = Annotated[Money, Field(ge=MIN_PRICE, lt=MAX_MONEY)]
Charge = Annotated[Money, Field(ge=0, lt=MAX_MONEY)]
Count = Annotated[int, Field(gt=0, le=MAX_INTEGER)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Offer(BaseModel):
    """A published offer. Unstated values are None, and so are ``usd_*`` if there is no exchange rate."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    provider: str
    raw_label: str
    instance_type: str | None
    listing_id: str | None = None
    gpu_id: str | None
    match_status: MatchStatus
    match_rule: str
    match_confidence: MatchConfidence | None = None
    candidates: str | None = None
    gpu_count: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    size_evidence: SizeEvidence = "assumed"
    gpu_counts: tuple[Count, ...] | None = None
    price_kind: PriceKind
    term_days: Count | None = None
    region: str | None = None
    country: Annotated[str, Field(pattern="^[A-Z]{2}$")] | None = None
    continent: Continent | None = None
    usd_per_hour: Price | None
    usd_per_gpu_hour: Annotated[Money, Field(gt=0)] | None
    native_price: Price
    native_currency: Annotated[str, Field(pattern="^[A-Z]{3}$")]
    native_unit: NativeUnit
    billing_increment_seconds: Count | None = None
    minimum_seconds: Annotated[int, Field(ge=0, le=MAX_INTEGER)] | None = None
    max_run_hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    min_gpu_count: Count | None = None
    available: bool | None = None
    tier: str | None = None
    tier_class: TierClass
    interconnect: str | None = None
    node_network_gbps: Amount | None = None
    max_nodes: Count | None = None
    vcpus: Amount | None = None
    ram_gib: Amount | None = None
    local_disk_gb: Amount | None = None
    storage_usd_per_gb_month: Charge | None = None
    egress_usd_per_gb: Charge | None = None
    download_usd_per_gb: Charge | None = None
    host_usd_per_vcpu_hour: Charge | None = None
    host_usd_per_gib_hour: Charge | None = None
    reliability: Amount | None = None
    fx_rate: Money | None = None
    fx_date: date | None = None
    effective_from: date | None = None
    flag_reason: str | None = None
    believed_because: str | None = None
    doubt: str | None = None
    believed_on: date | None = None
    observed_at: datetime
    source_url: str
    capture_sha256: str

    @property
    def is_marketplace(self) -> bool:
        """True if each host sets its own price, so that offers with equal columns are still distinct."""
        return self.tier_class == "marketplace"


class RejectedRow(BaseModel):
    """A rejected row with its reason; ``raw`` is the row as it appears in the source's answer, shortened."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    reason: RejectReason
    detail: str
    raw: Any | None
    observed_at: datetime
    source_url: str
    capture_sha256: str


@dataclass(slots=True)
class Built:
    """Offers, rejects and warnings from a source's rows."""

    offers: list[Offer] = field(default_factory=list)
    rejects: list[RejectedRow] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
