"""The answers of tools: typed values and the same in words, together short enough for an assistant."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from pipeline.contracts.errors import GpufareError
from pipeline.parsing.printable import printable, printable_json
from pipeline.questions.in_short import all_cautions
from pipeline.questions.numbers import number_text
from pipeline.questions.reasons import percent_text

MOST_BYTES = 3_900
"""The most bytes of an answer as JSON, its text and its values together; the protocol adds a few more."""

LEAST_ITEM_BYTES = 20
"""The least that an item of a list takes, in the text and among the values."""


class Way(BaseModel):
    """A way to run a job: cost, time and machine, with what tells how far to trust them. Amounts in US
    dollars; low and high are the 10th and 90th percentiles."""

    picked_as: list[str]
    rank: int
    gpu_id: str
    gpu_count: int
    provider: str
    country: str | None
    price_kind: str
    total_usd: float
    total_usd_low: float
    total_usd_high: float
    hours: float
    hours_low: float
    hours_high: float
    fit_probability: str
    price_day: date
    price_age_days: int | None
    evidence: str
    cautions: list[str]


class Ways(BaseModel):
    """The picks among the ways to run a job, what was assumed, and the command that answers the same."""

    picks: list[Way]
    assumed: list[str]
    command: str


class Reason(BaseModel):
    """Why a GPU is not the answer, or its rank."""

    gpu_id: str
    reason: str
    detail: str
    rank: int | None
    total_usd: float | None
    hours: float | None


class WhyNot(Ways):
    """Why a GPU is not the answer, beside the picks."""

    why_not: list[Reason]


class MemoryPart(BaseModel):
    """A part of the peak memory per GPU."""

    part: str
    gib: float


class Fits(BaseModel):
    """How a job fits on a GPU, and how fast it trains there; low and high are the 10th and 90th
    percentiles."""

    model: str
    method: str
    gpu_id: str
    gpu_count: int
    verdict: str
    fit_probability: str
    memory_gib: float
    memory_gib_low: float
    memory_gib_high: float
    usable_memory_gib: float
    micro_batch: int
    checkpointing: str
    tokens_per_second: float | None
    tokens_per_second_low: float | None
    tokens_per_second_high: float | None
    evidence: str
    memory: list[MemoryPart]
    assumed: list[str]
    command: str


class Fact(BaseModel):
    """A fact about two GPUs."""

    fact: str
    one: str | None
    other: str | None


class Comparison(BaseModel):
    """Two GPUs side by side; if a job was given, its cheapest way on each (null if there is none)."""

    one: Way | None
    other: Way | None
    facts: list[Fact]
    left_out: int
    assumed: list[str]
    command: str


class PricedJob(Way):
    """A published job with its cheapest way."""

    job: str
    title: str


class PricedJobs(BaseModel):
    """Published jobs, each with its cheapest way on demand."""

    jobs: list[PricedJob]
    left_out: int


class Model(BaseModel):
    """A model that a job can name."""

    model: str
    hf_id: str | None
    params_billion: float
    max_context: int | None


class Models(BaseModel):
    """Models that a job can name."""

    models: list[Model]
    left_out: int


class Gpu(BaseModel):
    """A GPU that a job can name, with the number of providers that rent it out."""

    gpu_id: str
    vendor: str
    architecture: str | None
    memory_gb: float | None
    providers: int


class Gpus(BaseModel):
    """GPUs that a job can name."""

    gpus: list[Gpu]
    left_out: int


class Price(BaseModel):
    """The lowest price of a card, kind and term at a provider, in US dollars per GPU-hour, and the number of
    GPUs of the machine that has it."""

    gpu_id: str
    usd_per_gpu_hour: float
    gpu_count: int
    provider: str
    country: str | None
    price_kind: str
    term_days: int | None
    tier_class: str
    available: bool | None
    price_day: date
    price_age_days: int | None


class GpuPrices(BaseModel):
    """Prices per GPU-hour, cheapest first."""

    prices: list[Price]
    left_out: int
    command: str


class Table(BaseModel):
    """The rows of a query, each a list of values in the order of the columns. ``left_out`` rows did not fit
    into the answer, out of the first thousand."""

    columns: list[str]
    rows: list[list[Any]]
    left_out: int


@dataclass
class Answer:
    """An answer that becomes shorter if it must: first it loses its ``extra`` lines, from the last; then its
    ``lines`` become the ``shorter`` ones; then it loses the ``items`` that it lists, from the last.

    ``data`` has the values for ``model``, and ``listed`` names its list of the items' values; ``unlisted``
    counts further items, which are never listed. The text consists of the lines, a line for each item, how to
    ask for the missing items (``narrow``), the extra lines, then ``end``."""

    model: type[BaseModel]
    data: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    shorter: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    end: list[str] = field(default_factory=list)
    listed: str = ""
    items: Sequence[tuple[str, Any]] = ()
    unlisted: int = 0
    narrow: str = "ask for less"

    def result(self) -> CallToolResult:
        """Return the answer in at most MOST_BYTES. Raises GpufareError if it cannot be so short."""
        every, most = len(self.items), MOST_BYTES // LEAST_ITEM_BYTES
        shorter = self.shorter or self.lines
        found = None
        if every <= most:
            found = _longest(range(len(self.extra) + 1), lambda extra: self._with(self.lines, every, extra))
            found = found or _longest(range(1), lambda extra: self._with(shorter, every, extra))
        found = found or _longest(
            range(1, min(every - 1, most) + 1), lambda items: self._with(shorter, items, 0)
        )
        if found is None:
            raise GpufareError(f"the answer is longer than {MOST_BYTES:,} bytes: {self.narrow}")
        return found

    def _with(self, lines: list[str], items: int, extra: int) -> CallToolResult:
        data, texts = dict(self.data), list(lines)
        if self.listed:
            left_out = len(self.items) - items + self.unlisted
            data |= {self.listed: [value for _, value in self.items[:items]], "left_out": left_out}
            texts += [line for line, _ in self.items[:items]]
            texts += [f"{left_out:,} more are left out: {self.narrow}."] if left_out else []
        texts += [*self.extra[:extra], *self.end]
        values = self.model.model_validate(data).model_dump(mode="json")
        return CallToolResult(
            content=[TextContent(type="text", text="\n".join(map(printable, texts)))],
            structured_content=printable_json(values),
        )


def _longest(counts: range, made: Callable[[int], CallToolResult]) -> CallToolResult | None:
    """Return what is ``made`` of the largest of ``counts`` with at most MOST_BYTES; None if all are longer. A
    larger count must make a longer result."""
    short = bisect_right(counts, MOST_BYTES, key=lambda count: size_bytes(made(count)))
    return made(counts[short - 1]) if short else None


def size_bytes(result: CallToolResult) -> int:
    """Return the size of a result as it is sent, in bytes."""
    return len(result.model_dump_json(by_alias=True, exclude_none=True).encode())


def refusal(error: GpufareError | str) -> CallToolResult:
    """Return an error as the result of a tool, from which an assistant can correct its call."""
    text = "\n".join(printable(line) for line in str(error).splitlines())
    cut = text.encode()[: MOST_BYTES // 2].decode(errors="ignore")
    return CallToolResult(
        content=[TextContent(type="text", text=cut if cut == text else f"{cut}…")], is_error=True
    )


def way(
    row: Mapping[str, Any], picked_as: Iterable[str] = (), replayed: Collection[str] = ()
) -> dict[str, Any]:
    """Return the values of a way to run a job from a row of ``cheapest_for``, rounded as in words;
    ``replayed``: as for ``short_text``."""
    rounded: dict[str, Any] = {
        name: float(round(row[name], 2)) for name in row if name.startswith("total_usd")
    }
    rounded |= {name: shown(row[name]) for name in ("hours", "hours_low", "hours_high")}
    return {
        **row,
        **rounded,
        "picked_as": list(picked_as),
        "fit_probability": percent_text(row["fit_probability"]),
        "cautions": all_cautions(row, replayed),
    }


def shown(value: float) -> float:
    """Return a number rounded as in words."""
    return float(number_text(value).replace(",", ""))
