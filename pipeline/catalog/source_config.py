"""Reviewed facts about the sources: catalog/sources/<name>.yaml, checked when they are loaded."""

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
    """A catalogue file is missing or invalid; the message names the file, the field and the remedy."""


class UnknownSourceError(GpufareError):
    """No source has that name; the message lists the most similar names, or all names if none is similar."""


class _Facts(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Content = TypeVar("Content")

_Host = Annotated[str, AfterValidator(declared_host)]


class Evidence(_Facts):
    """The evidence on which the reader is based: a captured answer, code that others run, documentation, or
    inference. Such evidence does not show that the source works today."""

    level: Literal["captured", "code", "documented", "inferred"]
    date: date
    note: str


class _Reading(_Facts):
    """The provider's terms on one question; ``unknown`` if the terms are not known to have been read.
    ``read_on`` is the day on which the terms were read, by us or by the person named in ``note``."""

    url: str | None = None
    read_on: date | None = None
    note: str = ""

    @model_validator(mode="after")
    def _require_date(self) -> Self:
        if "unknown" not in self.__dict__.values() and (self.read_on is None or not self.note):
            raise ValueError("terms that were read need read_on, and a note on who read what")
        return self


class Terms(_Reading):
    """Permission to read the source automatically; ``silent`` if the terms do not mention automation."""

    automated: Literal["allowed", "silent", "forbidden", "unknown"] = "unknown"


class Rights(_Reading):
    """What is known about permission to republish the source's prices; this is not legal advice."""

    republishing: Literal["allowed", "forbidden", "unknown"] = "unknown"


class Coverage(_Facts):
    """The visible part of the provider's offers; fields are None if unknown. ``share`` is the estimated share
    (0 to 1) of all GPU offers that the answers show without a key, ``regions`` the number of regions with
    GPUs, ``with_key`` what a key in ``key_variables`` adds, and ``key_from`` where a user gets such a key."""

    share: Annotated[Decimal, Field(ge=0, le=1)] | None = None
    regions: int | None = Field(default=None, gt=0)
    with_key: str | None = None
    key_from: str | None = None
    note: str = ""


class RequestFacts(_Facts):
    """One request. ``json_body`` is sent with the JSON content type; ``headers`` may contain ``${NAME}`` for
    a key from the environment. ``key_headers`` are sent too if their keys are set; otherwise the request is
    made without a key. An ``only_with_key`` request is made only if the source's keys are set. A capture is
    complete even without an answer to an ``optional`` request."""

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
        """The host of the URL, as ``host_of`` spells it."""
        return host_of(self.url)


class NextLinkPaging(_Facts):
    """Each answer gives the full address of the next page in ``field`` (a path such as ``meta.next``)."""

    kind: Literal["next_link"]
    field: str


class CursorPaging(_Facts):
    """Each answer gives a cursor in ``field``; the next request sends it as query parameter ``parameter``."""

    kind: Literal["cursor"]
    field: str
    parameter: str


class PageNumberPaging(_Facts):
    """The query parameter named by ``parameter`` is the page number, counted from 1.

    The last page is given by ``last_page_field``, or follows from the total number of items in
    ``total_header`` or ``total_field``; otherwise it is the first page with fewer ``items`` than requested.
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
    """How running time is charged; catalog/cost_parameters.csv gives defaults for fields that are None."""

    increment_seconds: int | None = Field(default=None, gt=0)
    minimum_seconds: int | None = Field(default=None, ge=0)
    min_gpu_count: int | None = Field(default=None, gt=0)
    charged_while_stopped: str | None = None


class Attributes(_Facts):
    """Defaults for every offer from the source. ``country`` is set if the source states that all its machines
    are in one country; ``tier_class`` is for tiers that do not imply a class. ``serverless_training`` is True
    if training jobs can run on the source's serverless offers, which are otherwise not ranked.
    ``max_run_hours`` is the longest that a machine can run at a stretch."""

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
    """Bounds for a day's offers; None stands for the default in catalog/gate_thresholds.csv.

    A source fails if ``rows_min`` or ``must_have`` is not met. More than ``rows_max`` rows cause a warning,
    and with more than ``flood_factor`` times as many the source fails. Offers outside ``usd_per_gpu_hour`` or
    with more than ``max_gpu_count`` GPUs are rejected; if ``known_sizes`` is True, so are prices per GPU
    where neither the answer nor catalog/machine_sizes.csv gives the machine's size. A price that moves by
    more than ``max_day_change`` is held. A page that says it is more than ``max_page_age_days`` old fails."""

    rows_min: int = Field(default=1, ge=1)
    rows_max: int | None = Field(default=None, ge=1)
    must_have: tuple[str, ...] = ()
    usd_per_gpu_hour: tuple[Decimal, Decimal] | None = None
    max_gpu_count: int | None = Field(default=None, gt=0)
    known_sizes: bool = False
    max_day_change: Decimal | None = Field(default=None, gt=0)
    max_page_age_days: int | None = Field(default=None, gt=0)
    fill_min: Mapping[str, float] = Field(default_factory=dict)


class LabelLookup(_Facts):
    """A label that only this provider's page explains; ``means`` is a label that the normalizer reads."""

    means: str
    why: str


class SourceConfig(_Facts):
    """All facts about a source; the code that reads the source's answers is in its reader.

    ``hosts`` are further hosts that may be asked or redirected to. ``api_hosts`` offer a documented interface
    for programs; their robots.txt, which is meant for crawlers, is not read, unlike the robots.txt of all
    other hosts. Hosts are given as ``name`` (port 443) or ``name:port``. The hosts of ``requests``, with
    their ports, need not be repeated; a leading ``www.`` makes no difference.
    ``ignored_fields`` are fields of JSON answers that the reader skips on purpose, and ``optional_fields``
    are fields that some answers lack: neither kind causes a warning. ``columns`` are the captions in the
    tables that are read. Warnings are given for other captions, for missing captions not in
    ``optional_fields``, and for a skipped table with at most one caption outside ``columns`` and none in
    ``ignored_fields``. If prices come in several currencies, ``currencies`` gives each currency's host.
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
    stale_after_days: int = Field(default=7, gt=0)
    notes: str = ""

    @model_validator(mode="after")
    def _check_requests(self) -> "SourceConfig":
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
        """Return the currencies of prices at an address: those of its host, or all if the host is unknown."""
        host = host_of(url)
        of_host = {currency for currency, at in self.currencies.items() if at == host}
        return frozenset(of_host or self.currencies or {self.currency})

    @property
    def needs_key(self) -> bool:
        """True if no request can be made without a key; otherwise a key only adds requests."""
        return bool(self.key_variables) and not any(
            "${" not in request.url + "".join(request.headers.values()) for request in self.requests
        )

    def missing_keys(self, environment: Mapping[str, str]) -> list[str]:
        """Return the ``key_variables`` that are unset or blank."""
        return [name for name in self.key_variables if not environment.get(name, "").strip()]

    def has_key(self, environment: Mapping[str, str]) -> bool:
        """True if all of the source's key variables are set."""
        return bool(self.key_variables) and not self.missing_keys(environment)

    def is_api(self, url: str) -> bool:
        """True if an address belongs to an API host, whose robots.txt is not read."""
        return host_of(url) in self.api_hosts

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """The hosts that may be asked or redirected to, as ``host_of`` spells them."""
        own = {request.host for request in self.requests}
        return frozenset(self.hosts) | frozenset(self.api_hosts) | own


class _EachKeyOnce(yaml.CSafeLoader):
    """A safe loader that rejects duplicate keys; YAML would silently use the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping at a node. Raises ConstructorError naming the line of a duplicate key."""
        names = [self.construct_object(key, deep=True) for key, _ in node.value]
        for (key, _), name in zip(node.value, names, strict=True):
            if names.count(name) > 1 and key.value != "<<":
                problem = f"{name!r} is given twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, kind: type[Content], **more: str) -> Content:
    """Return the checked content of a yaml file, with ``more`` fields added. Raises CatalogError naming the
    file and the field."""
    try:
        given = yaml.load(path.read_text(encoding="utf-8"), _EachKeyOnce)  # noqa: S506 - a SafeLoader
        return TypeAdapter(kind).validate_python(dict(**more, **given) if more else given)
    except FileNotFoundError as error:
        raise CatalogError(f"{path} is missing") from error
    except (yaml.YAMLError, ValidationError, TypeError) as error:
        raise CatalogError(f"{path} cannot be used: {error}") from error


def load_config(path: Path) -> SourceConfig:
    """Read the yaml file of one source. Raises CatalogError naming the file and the field."""
    return read_yaml(path, SourceConfig, name=path.stem)


@cache
def configs() -> Mapping[str, SourceConfig]:
    """Return the catalogue's sources, keyed by name and sorted."""
    files = sorted((paths.CATALOG_DIR / "sources").glob("*.yaml"))
    return {file.stem: load_config(file) for file in files}


def asked_configs() -> Mapping[str, SourceConfig]:
    """Return the sources that a refresh may ask, keyed by name: all except those imported from files."""
    return {name: config for name, config in configs().items() if config.kind != "imported"}


def source_config(name: str) -> SourceConfig:
    """Return the facts about one source. Raises UnknownSourceError."""
    try:
        return configs()[name]
    except KeyError:
        similar = get_close_matches(name.lower(), configs(), n=3)
        hint = (
            f"did you mean {' or '.join(similar)}?" if similar else f"known sources: {', '.join(configs())}"
        )
        raise UnknownSourceError(f"there is no source {name!r}; {hint}") from None
