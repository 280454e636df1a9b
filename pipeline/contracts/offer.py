"""The offer: one price for one kind of machine, as one source showed it at one moment."""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from pipeline.contracts.listing import NativeUnit, PriceKind
from pipeline.contracts.reject_reasons import RejectReason

MatchStatus = Literal["matched", "ambiguous", "unknown", "not_a_gpu"]

MOST_MONEY = Decimal(10) ** 10
LEAST_MONEY = Decimal("1e-8")
"""What DECIMAL(18, 8) holds."""

MOST_INTEGER = 2**31 - 1

Money = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
"""Decimal in Python, Parquet and SQL; a plain number in JSON lines."""


class Offer(BaseModel):
    """The published row. What a source does not say is None; ``usd_*`` is None without an exchange rate."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    provider: str
    raw_label: str
    instance_type: str | None
    gpu_id: str | None
    match_status: MatchStatus
    match_rule: str
    match_confidence: str | None = None
    candidates: str | None = None
    gpu_count: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    price_kind: PriceKind
    term_days: Annotated[int, Field(gt=0, le=MOST_INTEGER)] | None = None
    region: str | None = None
    usd_per_hour: Annotated[Money, Field(ge=LEAST_MONEY, lt=MOST_MONEY)] | None
    usd_per_gpu_hour: Annotated[Money, Field(gt=0)] | None
    native_price: Annotated[Money, Field(ge=LEAST_MONEY, lt=MOST_MONEY)]
    native_currency: Annotated[str, Field(pattern="^[A-Z]{3}$")]
    native_unit: NativeUnit
    billing_increment_seconds: Annotated[int, Field(gt=0, le=MOST_INTEGER)] | None = None
    minimum_seconds: Annotated[int, Field(ge=0, le=MOST_INTEGER)] | None = None
    min_gpu_count: Annotated[int, Field(gt=0, le=MOST_INTEGER)] | None = None
    available: bool | None = None
    tier: str | None = None
    interconnect: str | None = None
    node_network_gbps: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    max_nodes: Annotated[int, Field(gt=0, le=MOST_INTEGER)] | None = None
    vcpus: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    ram_gib: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    local_disk_gb: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    storage_usd_per_gb_month: Annotated[Money, Field(ge=0, lt=MOST_MONEY)] | None = None
    egress_usd_per_gb: Annotated[Money, Field(ge=0, lt=MOST_MONEY)] | None = None
    reliability: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    fx_rate: Money | None = None
    fx_date: date | None = None
    effective_from: date | None = None
    flag_reason: str | None = None
    observed_at: datetime
    source_url: str
    capture_sha256: str


class RejectedRow(BaseModel):
    """A row that was left out, with its reason."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    reason: RejectReason
    detail: str
    raw: Any
    observed_at: datetime
    source_url: str
    capture_sha256: str
