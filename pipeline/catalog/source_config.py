"""The reviewed facts of a source: catalog/sources/<name>.yaml, checked on loading."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from pipeline.contracts.errors import GpufareError
from pipeline.contracts.hosts import declared_host, host_of
from pipeline.contracts.listing import TierClass
from pipeline.home import paths


class CatalogError(GpufareError):
    """A file of the catalogue is missing or wrong: says which file, which field and what to do."""


class UnknownSourceError(GpufareError):
    """No source has that name: the message has the nearest names, else all there are."""


class _Facts(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Content = TypeVar("Content")

_Host = Annotated[str, AfterValidator(declared_host)]


class Evidence(_Facts):
    """What the reader rests on. ``level``: a captured answer, code that others run, documentation, or
    inference. Nothing here says that the source works today."""

    level: Literal["captured", "code", "documented", "inferred"]
    date: date
    note: str


class _Reading(_Facts):
    """What the provider's terms say of one question; ``unknown`` where nobody is known to have read them on
    it. ``read_on`` is the day on which they were read, by us or by the person whom ``note`` names."""

    url: str | None = None
    read_on: date | None = None
    note: str = ""

    @model_validator(mode="after")
    def _what_was_read_has_a_date(self) -> Self:
        if "unknown" not in self.__dict__.values() and (self.read_on is None or not self.note):
            raise ValueError("terms that were read need read_on, and a note on who read what")
        return self


class Terms(_Reading):
    """Whether they allow automated reading; ``silent`` where they were read and say nothing of it."""

    automated: Literal["allowed", "silent", "forbidden", "unknown"] = "unknown"


class Rights(_Reading):
    """Whether the source's prices may be published again, as far as is known. No legal advice."""

    republishing: Literal["allowed", "forbidden", "unknown"] = "unknown"


class Coverage(_Facts):
    """How much of what the provider sells a user sees. ``share`` is the estimated part (0 to 1) of its GPU
    offers that the answers have without a key, ``regions`` the number of regions that it sells GPUs in,
    ``with_key`` what a key of ``key_variables`` would add, and ``key_from`` where a user gets one. None where
    it is not known."""

    share: Annotated[Decimal, Field(ge=0, le=1)] | None = None
    regions: int | None = Field(default=None, gt=0)
    with_key: str | None = None
    key_from: str | None = None
    note: str = ""


class RequestFacts(_Facts):
    """One request. ``json_body`` is sent as JSON with its content type; ``headers`` may contain ``${NAME}``
    for a key from the environment. ``key_headers`` are sent, too, where their keys are set; without them the
    request is made without a key. An ``only_with_key`` request is made only where the source's keys are set.
    Without the answer to an ``optional`` request the others can still be read: the capture is not partial for
    want of it."""

    url: str
    method: Literal["GET", "POST"] = "GET"
    headers: Mapping[str, str] = Field(default_factory=dict)
    key_headers: Mapping[str, str] = Field(default_factory=dict)
    json_body: Any = None
    content_types: tuple[str, ...] = ()
    only_with_key: bool = False
    optional: bool = False

    @property
    def host(self) -> str:
        """The host that the URL asks, as ``host_of`` spells it."""
        return host_of(self.url)


class NextLinkPaging(_Facts):
    """The answer has the whole address of the next page in ``field`` (a path such as ``meta.next``)."""

    kind: Literal["next_link"]
    field: str


class CursorPaging(_Facts):
    """The answer has a cursor in ``field``, which the next request has in a ``parameter`` of its query."""

    kind: Literal["cursor"]
    field: str
    parameter: str


class PageNumberPaging(_Facts):
    """Pages are counted from 1 in a ``parameter`` of the query.

    The last page follows from ``last_page_field``, or from the number of all items in ``total_header`` or
    ``total_field``; without these, a page with as many ``items`` as were asked for is not the last.
    """

    kind: Literal["page_number"]
    items: str
    parameter: str = "page"
    size_parameter: str
    last_page_field: str | None = None
    total_field: str | None = None
    total_header: str | None = None


Paging = NextLinkPaging | CursorPaging | PageNumberPaging


class Billing(_Facts):
    """How running time is charged, where the source says so. Amounts are USD unless named otherwise."""

    increment_seconds: int | None = Field(default=None, gt=0)
    minimum_seconds: int | None = Field(default=None, ge=0)
    min_gpu_count: int | None = Field(default=None, gt=0)
    charged_while_stopped: str | None = None


class Attributes(_Facts):
    """What applies to every offer of the source that does not say otherwise. ``country`` is for a source that
    states that all its machines are there; ``tier_class`` is for tiers that do not name theirs.
    ``serverless_training`` says whether a training job can run on the source's serverless offers; without it,
    they are not ranked. ``max_run_hours`` is the longest that a machine runs at a stretch."""

    region: str | None = None
    country: Annotated[str, Field(pattern="^[A-Z]{2}$")] | None = None
    tier: str | None = None
    tier_class: TierClass = "dedicated"
    interconnect: str | None = None
    node_network_gbps: float | None = Field(default=None, gt=0)
    max_nodes: int | None = Field(default=None, gt=0)
    storage_usd_per_gb_month: Decimal | None = Field(default=None, ge=0)
    egress_usd_per_gb: Decimal | None = Field(default=None, ge=0)
    persistent_disk: bool | None = None
    local_nvme: bool | None = None
    serverless_training: bool | None = None
    max_run_hours: float | None = Field(default=None, gt=0)


class Expectations(_Facts):
    """Bounds that a day's offers must keep; None stands for the default of catalog/gate_thresholds.csv.

    A breach of ``rows_min`` or ``must_have`` fails the source; more than ``rows_max`` warns, and a multiple
    of it fails the source. Offers outside ``usd_per_gpu_hour`` or with more than ``max_gpu_count`` GPUs are
    rejected; with ``known_sizes``, so is a price per GPU if neither the answer nor catalog/machine_sizes.csv
    names the machines with that GPU. A price that moves by more than ``max_day_change`` is held."""

    rows_min: int = Field(default=1, ge=1)
    rows_max: int | None = Field(default=None, ge=1)
    must_have: tuple[str, ...] = ()
    usd_per_gpu_hour: tuple[Decimal, Decimal] | None = None
    max_gpu_count: int | None = Field(default=None, gt=0)
    known_sizes: bool = False
    max_day_change: Decimal | None = Field(default=None, gt=0)
    fill_min: Mapping[str, float] = Field(default_factory=dict)


class LabelLookup(_Facts):
    """A label that only this provider's own page settles: ``means`` is a label the normalizer reads."""

    means: str
    why: str


class ReviewedPrice(_Facts):
    """A price that a person found on the page, so that no gate holds it: ``offer`` has the columns that tell
    the offer from others (``raw_label`` and, where needed, more of ``REVIEWABLE``)."""

    offer: Mapping[str, str | int | float]
    price: Decimal = Field(gt=0)
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")
    by: str = Field(min_length=1)
    on: date
    why: str = Field(min_length=1)

    @model_validator(mode="after")
    def _names_an_offer(self) -> "ReviewedPrice":
        unknown = sorted(self.offer.keys() - REVIEWABLE)
        if unknown or "raw_label" not in self.offer:
            raise ValueError(
                f"offer needs raw_label and may have {', '.join(sorted(REVIEWABLE - {'raw_label'}))}"
                + (f"; it has {', '.join(unknown)}" if unknown else "")
            )
        return self


REVIEWABLE = frozenset(
    {"raw_label", "instance_type", "gpu_count", "price_kind", "term_days", "region", "tier"}
)
"""Columns of an offer that a reviewed price may name."""


class SourceConfig(_Facts):
    """Everything that gpufare knows of a source besides how to read its answers.

    ``hosts`` are further hosts that may be asked or redirected to. ``api_hosts`` offer a documented interface
    for programs: their robots.txt, written for crawlers of pages, is not asked; that of every other host is.
    Both are ``name`` (port 443) or ``name:port``; the hosts of ``requests``, with their ports, need not be
    repeated, and a site is the same with and without ``www.``.
    ``ignored_fields`` are fields of JSON answers that the reader leaves unread on purpose, and
    ``optional_fields`` those that it reads though not every answer has them: neither gives a warning.
    ``columns`` are the captions of the tables that it reads: another one gives a warning, and so does the
    lack of one, unless it is in ``optional_fields``, too, and a skipped table that has all but one of its
    captions among them and none in ``ignored_fields``. Where prices come in several currencies,
    ``currencies`` names the host whose answers have each.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: str
    provider: str
    homepage: str
    evidence: Evidence
    terms: Terms = Terms()
    rights: Rights = Rights()
    coverage: Coverage = Coverage()
    requests: tuple[RequestFacts, ...] = ()
    paging: Annotated[Paging, Field(discriminator="kind")] | None = None
    hosts: tuple[_Host, ...] = ()
    api_hosts: tuple[_Host, ...] = ()
    currency: str = "USD"
    currencies: Mapping[str, _Host] = Field(default_factory=dict)
    kind: Literal["prices", "exchange_rates", "imported"] = "prices"
    key_variables: tuple[str, ...] = ()
    disabled: str | None = None
    spacing_seconds: float = Field(default=1.0, ge=0)
    time_limit_seconds: float = Field(default=300, gt=0)
    max_body_bytes: int = Field(default=32 * 2**20, gt=0)
    billing: Billing = Billing()
    attributes: Attributes = Attributes()
    ignored_fields: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    optional_fields: tuple[str, ...] = ()
    lookups: Mapping[str, LabelLookup] = Field(default_factory=dict)
    settings: Mapping[str, Any] = Field(default_factory=dict)
    expect: Expectations = Expectations()
    reviewed_prices: tuple[ReviewedPrice, ...] = ()
    stale_after_days: int = Field(default=7, gt=0)
    notes: str = ""

    @model_validator(mode="after")
    def _can_be_asked(self) -> "SourceConfig":
        if not self.allowed_hosts and self.disabled is None:
            raise ValueError("name at least one request or host, or say why the source is disabled")
        if self.requests and all(request.optional for request in self.requests):
            raise ValueError("at least one request must not be optional")
        if unknown := sorted(set(self.currencies.values()) - self.allowed_hosts):
            raise ValueError(f"currencies names hosts that are not asked: {', '.join(unknown)}")
        if self.currencies and self.currency not in self.currencies:
            raise ValueError(f"currencies must name the host of {self.currency}, too")
        return self

    def currencies_of(self, url: str) -> frozenset[str]:
        """The currencies that an answer from an address may have prices in; of an unknown host, all."""
        host = host_of(url)
        of_host = {currency for currency, at in self.currencies.items() if at == host}
        return frozenset(of_host or self.currencies or {self.currency})

    @property
    def needs_key(self) -> bool:
        """Whether nothing can be asked without a key; elsewhere a key only adds to what is asked."""
        return bool(self.key_variables) and not any(
            "${" not in request.url + "".join(request.headers.values()) for request in self.requests
        )

    def missing_keys(self, environment: Mapping[str, str]) -> list[str]:
        """The ``key_variables`` that are not set; a blank one counts as not set."""
        return [name for name in self.key_variables if not environment.get(name, "").strip()]

    def has_key(self, environment: Mapping[str, str]) -> bool:
        """Whether the user set the source's key: all of its variables, where there are several."""
        return bool(self.key_variables) and not self.missing_keys(environment)

    def is_api(self, url: str) -> bool:
        """Whether an address is of an interface for programs, whose robots.txt is not asked."""
        return host_of(url) in self.api_hosts

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """Hosts that may be asked or redirected to, as ``host_of`` spells them."""
        own = {request.host for request in self.requests}
        return frozenset(self.hosts) | frozenset(self.api_hosts) | own


class _EachKeyOnce(yaml.SafeLoader):
    """Plain data only, as SafeLoader, and no key twice: the last one would win silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping. Raises ConstructorError, which gives the line."""
        names = [self.construct_object(key, deep=True) for key, _ in node.value]
        for (key, _), name in zip(node.value, names, strict=True):
            if names.count(name) > 1 and key.value != "<<":
                problem = f"{name!r} is given twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, kind: type[Content], **more: str) -> Content:
    """Return what a yaml file of the catalogue says, checked, with ``more`` beside the fields that it gives.
    Raises CatalogError naming the file and the field."""
    try:
        given = yaml.load(path.read_text(encoding="utf-8"), _EachKeyOnce)  # noqa: S506 - a SafeLoader
        return TypeAdapter(kind).validate_python(dict(**more, **given) if more else given)
    except FileNotFoundError as error:
        raise CatalogError(f"{path} is missing") from error
    except (yaml.YAMLError, ValidationError, TypeError) as error:
        raise CatalogError(f"{path} cannot be used: {error}") from error


def load_config(path: Path) -> SourceConfig:
    """Read one source's yaml. Raises CatalogError naming the file and the field."""
    return read_yaml(path, SourceConfig, name=path.stem)


@cache
def configs() -> Mapping[str, SourceConfig]:
    """Every source of the catalogue by name, in the order of the names."""
    files = sorted((paths.CATALOG_DIR / "sources").glob("*.yaml"))
    return {file.stem: load_config(file) for file in files}


def asked_configs() -> Mapping[str, SourceConfig]:
    """The sources that a refresh may ask, by name: all but those whose prices are imported from files."""
    return {name: config for name, config in configs().items() if config.kind != "imported"}


def source_config(name: str) -> SourceConfig:
    """The facts of one source. Raises UnknownSourceError."""
    try:
        return configs()[name]
    except KeyError:
        similar = get_close_matches(name.lower(), configs(), n=3)
        hint = (
            f"did you mean {' or '.join(similar)}?" if similar else f"known sources: {', '.join(configs())}"
        )
        raise UnknownSourceError(f"there is no source {name!r}; {hint}") from None
