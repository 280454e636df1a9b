"""The offer: one price for one kind of machine, as one source showed it at one moment.

The fields below are the one definition of an offer's columns. The Parquet schema is derived from them
(``column_types``), and tests compare sql/schema/offers.sql and offers_latest.sql with them: names, order,
types, NOT NULL and comments.
"""

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from pipeline.contracts.listing import NATIVE_UNITS, NativeUnit, PriceKind
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.contracts.tiers import TierClass

MatchStatus = Literal["matched", "ambiguous", "unknown", "not_a_gpu"]
MatchConfidence = Literal["certain", "usual", "none"]
SizeEvidence = Literal["offered", "catalogued", "assumed"]

Continent = Literal["africa", "antarctica", "asia", "europe", "north_america", "oceania", "south_america"]
CONTINENTS: tuple[Continent, ...] = get_args(Continent)

MIN_PRICE = Decimal("1e-8")
MAX_MONEY = Decimal(10) ** 10
"""Smallest price above zero, and first amount too large, for DECIMAL(18, 8)."""

MAX_INTEGER = 2**31 - 1
"""Largest value of an INTEGER column."""

Money = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
"""Decimal in Python, Parquet and SQL; a plain number in JSON lines."""

Price = Annotated[Money, Field(ge=MIN_PRICE, lt=MAX_MONEY)]
Charge = Annotated[Money, Field(ge=0, lt=MAX_MONEY)]
Count = Annotated[int, Field(gt=0, le=MAX_INTEGER)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Offer(BaseModel):
    """The published row. What a source does not say is None; ``usd_*`` is None without an exchange rate."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = Field(description="Key into sources.")
    provider: str = Field(description="Who rents the machine out.")
    raw_label: str = Field(description="The GPU or machine in the source's own words.")
    instance_type: str | None = Field(
        description="The source's own name of the machine; null where it sells GPUs and not machines."
    )
    gpu_id: str | None = Field(description="Key into gpus; null unless match_status is matched.")
    match_status: MatchStatus = Field(
        description="Whether the label says for sure which GPU it is: matched, ambiguous or unknown."
    )
    match_rule: str = Field(description="The rule that identified the GPU.")
    match_confidence: MatchConfidence | None = Field(
        default=None,
        description="How sure the match is: certain, or usual where sellers mean the usual card of the name; "
        "none without a match.",
    )
    candidates: str | None = Field(default=None, description="What an ambiguous label could be.")
    gpu_count: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        description="GPUs of the whole offer; a fraction for a slice."
    )
    size_evidence: SizeEvidence = Field(
        default="assumed",
        description="How it is known that a machine of so many GPUs is sold: offered (the answer lists it), "
        "catalogued (machine_sizes has it) or assumed.",
    )
    gpu_counts: tuple[Count, ...] | None = Field(
        default=None,
        description="Numbers of GPUs in which the answer says that a price for one GPU is rented as one "
        "machine; null where it does not say.",
    )
    price_kind: PriceKind = Field(
        description="on_demand, flex_start (starts when there is capacity, is not interrupted, limited in "
        "time), spot (may be interrupted), reserved (for a term) or serverless (per second, host charged "
        "separately)."
    )
    term_days: Count | None = Field(default=None, description="Length of a reserved term in days.")
    region: str | None = Field(default=None, description="Where the machine is, in the source's words.")
    country: Annotated[str, Field(pattern="^[A-Z]{2}$")] | None = Field(
        default=None,
        description="Country of the machine (ISO 3166-1 alpha-2); null where the source does not say.",
    )
    continent: Continent | None = Field(
        default=None,
        description=f"Its continent: {', '.join(CONTINENTS[:-1])} or {CONTINENTS[-1]}; also where only the "
        "continent is said.",
    )
    usd_per_hour: Price | None = Field(
        description="USD per hour of the whole offer, without taxes; null without an exchange rate."
    )
    usd_per_gpu_hour: Annotated[Money, Field(gt=0)] | None = Field(
        description="USD per GPU and hour, without taxes; null without an exchange rate."
    )
    native_price: Price = Field(description="The price as the source writes it.")
    native_currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = Field(
        description="Currency of native_price (ISO 4217)."
    )
    native_unit: NativeUnit = Field(
        description=f"What native_price is per: {', '.join(NATIVE_UNITS)}; an instance is the whole offer, "
        "a term all of term_days."
    )
    billing_increment_seconds: Count | None = Field(
        default=None, description="Running time is charged in steps of this many seconds."
    )
    minimum_seconds: Annotated[int, Field(ge=0, le=MAX_INTEGER)] | None = Field(
        default=None, description="Shortest running time that is charged, in seconds."
    )
    max_run_hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None,
        description="Longest time in hours that the machine runs at a stretch; null without a stated limit.",
    )
    min_gpu_count: Count | None = Field(default=None, description="Fewest GPUs that can be rented.")
    available: bool | None = Field(default=None, description="Whether it could be rented when it was read.")
    tier: str | None = Field(default=None, description="secure, community, marketplace and the like.")
    tier_class: TierClass = Field(
        description="What kind of renting tier is: dedicated (the provider's own machines), community "
        "(private owners' machines at the provider's price), marketplace (each owner sets a price) or "
        "serverless."
    )
    interconnect: str | None = Field(default=None, description="Fabric between machines.")
    node_network_gbps: Amount | None = Field(
        default=None, description="Network of one machine in 10^9 bits per second."
    )
    max_nodes: Count | None = Field(
        default=None, description="Most machines that can be rented as one cluster."
    )
    vcpus: Amount | None = Field(default=None, description="Virtual CPUs of the whole offer.")
    ram_gib: Amount | None = Field(default=None, description="Host memory of the whole offer in GiB.")
    local_disk_gb: Amount | None = Field(default=None, description="Local disk in the price, in GB.")
    storage_usd_per_gb_month: Charge | None = Field(default=None, description="Disk in USD per GB and month.")
    egress_usd_per_gb: Charge | None = Field(
        default=None, description="Data leaving the cloud in USD per GB."
    )
    download_usd_per_gb: Charge | None = Field(
        default=None, description="Data coming into the cloud in USD per GB."
    )
    reliability: Amount | None = Field(
        default=None, description="Share of time that the host was up, as the source states it."
    )
    fx_rate: Money | None = Field(
        default=None, description="USD for one unit of native_currency; null for USD."
    )
    fx_date: date | None = Field(default=None, description="Day of that rate.")
    effective_from: date | None = Field(default=None, description="First day of a price announced ahead.")
    flag_reason: str | None = Field(
        default=None,
        description=f"Why a readable price is in doubt, so it is not ranked: {', '.join(FlagReason)}.",
    )
    observed_at: datetime = Field(description="When the answer was captured (UTC).")
    source_url: str = Field(description="Where it was read.")
    capture_sha256: str = Field(description="Hash of the archived answer.")

    @property
    def is_marketplace(self) -> bool:
        """Whether each host asks its own price, so that offers alike in every column are not the same."""
        return self.tier_class == "marketplace"


class RejectedRow(BaseModel):
    """A row that was left out, with its reason."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = Field(description="Key into sources.")
    reason: RejectReason = Field(description="Key into reject_reasons.")
    detail: str = Field(description="What exactly was wrong with this row.")
    raw: Any | None = Field(description="The row as the source has it, as JSON, shortened when long.")
    observed_at: datetime = Field(description="When the answer was captured (UTC).")
    source_url: str = Field(description="Where it was read.")
    capture_sha256: str = Field(description="Hash of the archived answer.")


def column_types(contract: type[BaseModel]) -> dict[str, type]:
    """The Python type of each column, without its constraints: text for literals, enums and JSON, tuple for
    whole numbers in a list."""
    return {name: _value_type(field.annotation) for name, field in contract.model_fields.items()}


def _value_type(annotation: Any) -> type:
    if get_origin(annotation) is Annotated:
        return _value_type(get_args(annotation)[0])
    if get_origin(annotation) is tuple:
        return tuple
    if get_origin(annotation) in (Union, UnionType):
        (value,) = (each for each in get_args(annotation) if each is not NoneType)
        return _value_type(value)
    if annotation is Any or get_origin(annotation) is Literal or issubclass(annotation, Enum):
        return str
    return annotation  # type: ignore[no-any-return]


@dataclass(slots=True)
class Built:
    """The offers, rejects and warnings that a source's rows gave."""

    offers: list[Offer] = field(default_factory=list)
    rejects: list[RejectedRow] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
