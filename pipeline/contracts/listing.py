"""The interface of a source module.

A source consists of ``catalog/sources/<name>.yaml`` (addresses, currency, billing, bounds, evidence) and
``pipeline/sources/<name>.py`` (how its answers are read). Nothing here or in a source module touches the
network, the clock or Dagster: bytes come in, listings come out.

A source module defines

    def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Row]

and, if the yaml's ``requests`` do not suffice,

    def requests(config: SourceConfig, environment: Mapping[str, str]) -> list[Request]
    def next_requests(answer: Answer, config: SourceConfig) -> list[Request]  # unless yaml paging suffices

If a variable in the yaml's ``key_variables`` has a value, ``environment`` maps its name to ``${NAME}``: the
keys themselves are filled in when a request is sent;

if other requests can replace a failed request,

    def retry_requests(answer: Answer, config: SourceConfig) -> list[Request]

which is called for each failed request: ``answer`` contains the address, the status (0 if there was no
answer) and the beginning of the body. The returned requests are sent next, each once. If all returned
requests are answered, they make up for the failure, which a warning reports. Failed replacements are passed
in, too: to try a chain of addresses, request the one after ``answer.url``, and return [] after the last;

if an answer contains data that must not be stored, a function that removes the data before archiving

    def redact(body: bytes) -> bytes

and, if the yaml's ``kind`` is ``exchange_rates``, instead of ``read``

    def read_rates(answers: Sequence[Answer], config: SourceConfig) -> ExchangeRates
"""

import json
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal, get_args

from pipeline.contracts.errors import GpufareError
from pipeline.contracts.reject_reasons import FlagReason, RejectReason

PriceKind = Literal["on_demand", "flex_start", "spot", "reserved", "serverless"]
PRICE_KINDS: tuple[PriceKind, ...] = get_args(PriceKind)

TierClass = Literal["dedicated", "resold", "community", "marketplace", "serverless"]
"""The kinds of rental, which differ in who owns the machine and who sets its price."""
TIER_CLASSES: tuple[TierClass, ...] = get_args(TierClass)

LabelKind = Literal["gpu_name", "instance_type"]

NativeUnit = Literal[
    "gpu_second",
    "gpu_minute",
    "gpu_hour",
    "gpu_month",
    "instance_second",
    "instance_minute",
    "instance_hour",
    "instance_month",
    "instance_term",
]
"""The unit of the native price: ``instance_*`` means the whole offer, ``instance_term`` its whole term."""


class SourceChangedError(GpufareError):
    """The answer does not have the expected structure: the whole source fails, since nothing is guessed."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request to a provider. ``body`` is sent unchanged. If an ``optional`` request has no answer,
    the other answers can still be read."""

    url: str
    method: Literal["GET", "POST"] = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """One archived answer: its raw bytes, its address, and the time of its capture (``observed_at``, UTC).

    A reader gets the answers with status 200; ``retry_requests`` gets the failed ones, with status 0 if there
    was no answer. ``request_body`` is the request's body, without keys; readers do not get it."""

    url: str
    body: bytes
    observed_at: datetime
    sha256: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    request_body: bytes | None = None

    def changed(self, problem: str) -> SourceChangedError:
        """Return the error for an answer that does not have the expected structure."""
        return SourceChangedError(f"{self.url}: {problem}")

    def text(self) -> str:
        """Return the body as text. Raises SourceChangedError if the body is not UTF-8."""
        try:
            return self.body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise self.changed(f"the answer is not UTF-8 text ({error})") from error

    @property
    def is_json(self) -> bool:
        """True if the body begins like a JSON object or list."""
        return self.body.removeprefix(BOM_UTF8).lstrip().startswith((b"{", b"["))

    def json(self) -> Any:
        """Return the body, parsed by ``read_json``. Raises SourceChangedError if the body is not JSON."""
        try:
            return read_json(self.text(), self.url)
        except ValueError as error:
            raise self.changed(f"the answer is not JSON ({error})") from error


def read_json(text: str, place: str, *, beginning: bool = False) -> Any:
    """Return the value of a JSON text, with floats as Decimal; with ``beginning``, the value it begins with.

    Raises ValueError if the text is not JSON, and SourceChangedError, naming ``place``, for an object
    with two different values for one field.
    """

    def one_value_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        for name, value in pairs if len(made) < len(pairs) else ():
            if made[name] != value:
                both = f"{str(value)[:80]!r} and {str(made[name])[:80]!r}"
                raise SourceChangedError(
                    f"{place}: the field {name[:80]!r} has several values in one object: {both}"
                )
        return made

    decoder = json.JSONDecoder(
        parse_float=Decimal,
        parse_constant=_reject_constant,
        object_pairs_hook=one_value_each,
        strict=not beginning,
    )
    try:
        return decoder.raw_decode(text)[0] if beginning else decoder.decode(text)
    except (ArithmeticError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One price, as the source states it.

    ``native_price`` is per ``native_unit``; ``gpu_count`` is the number of GPUs in the whole offer (a
    fraction for a slice). ``gpu_counts`` are the sizes, in ascending order, of machines rented at a price per
    GPU, if the answer states the sizes; None for the price of a whole machine. ``context`` contains further
    facts that identify the GPU, under the keys that the normalizer reads: ``vram_gb`` / ``gpu_ram_mib`` (per
    GPU), ``gpu_total_ram_mib`` / ``vram_total_gb`` (whole offer), ``form_factor``, ``gpu_name``. Values that
    the source does not state are None; values that its yaml states for all offers are filled in later. For an
    aggregator, ``upstream_provider`` is the owner of the machine, so that the machine is not counted twice.
    ``country`` is the country that a source states in addition to the region.
    """

    raw_label: str
    gpu_count: float | None
    price_kind: PriceKind
    native_price: Decimal
    native_currency: str
    native_unit: NativeUnit
    answer: Answer
    source_url: str | None = None
    label_kind: LabelKind = "gpu_name"
    context: Mapping[str, str | float | Decimal] = field(default_factory=dict)
    gpu_counts: tuple[int, ...] | None = None
    instance_type: str | None = None
    listing_id: str | None = None
    term_days: int | None = None
    region: str | None = None
    country: str | None = None
    billing_increment_seconds: int | None = None
    minimum_seconds: int | None = None
    max_run_hours: float | None = None
    min_gpu_count: int | None = None
    available: bool | None = None
    tier: str | None = None
    upstream_provider: str | None = None
    interconnect: str | None = None
    node_network_gbps: float | None = None
    max_nodes: int | None = None
    vcpus: float | None = None
    ram_gib: float | None = None
    local_disk_gb: float | None = None
    storage_usd_per_gb_month: Decimal | None = None
    egress_usd_per_gb: Decimal | None = None
    download_usd_per_gb: Decimal | None = None
    host_usd_per_vcpu_hour: Decimal | None = None
    host_usd_per_gib_hour: Decimal | None = None
    reliability: float | None = None
    effective_from: date | None = None
    flag_reason: FlagReason | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """A rejected row: ``detail`` says what is wrong with it, and ``raw`` is the row as it appears in the
    answer (shortened when stored)."""

    reason: RejectReason
    detail: str
    raw: Any
    answer: Answer


@dataclass(frozen=True, slots=True)
class ReaderWarning:
    """Something in the answers that a person should look at, though no row was rejected."""

    text: str


Row = Listing | Reject | ReaderWarning
"""The items that a reader yields."""
