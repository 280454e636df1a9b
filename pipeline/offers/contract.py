"""The offer: one price for one kind of machine, as one source showed it at one moment."""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from pipeline.sources.base import NativeUnit, PriceKind

MatchStatus = Literal["matched", "ambiguous", "unknown", "not_a_gpu"]

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
    candidates: str | None = None
    gpu_count: Annotated[float, Field(gt=0)]
    price_kind: PriceKind
    term_days: Annotated[int, Field(gt=0)] | None = None
    region: str | None = None
    usd_per_hour: Annotated[Money, Field(gt=0)] | None
    usd_per_gpu_hour: Annotated[Money, Field(gt=0)] | None
    native_price: Annotated[Money, Field(gt=0)]
    native_currency: Annotated[str, Field(pattern="^[A-Z]{3}$")]
    native_unit: NativeUnit
    billing_increment_seconds: int | None = None
    minimum_seconds: int | None = None
    min_gpu_count: int | None = None
    available: bool | None = None
    tier: str | None = None
    interconnect: str | None = None
    node_network_gbps: float | None = None
    max_nodes: int | None = None
    vcpus: float | None = None
    ram_gib: float | None = None
    local_disk_gb: float | None = None
    storage_usd_per_gb_month: Money | None = None
    egress_usd_per_gb: Money | None = None
    reliability: float | None = None
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
    reason: str
    detail: str
    raw: Any
    observed_at: datetime
    source_url: str
    capture_sha256: str
