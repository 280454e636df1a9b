"""docs/reference/reasons.md: every code with its sentence."""

from collections.abc import Iterable, Iterator

from docs.generate.markdown import code, table, text
from pipeline.contracts.codes import CodeWithSentence
from pipeline.contracts.incidents import IncidentKind
from pipeline.contracts.outcome import OutcomeCode, SourceResult
from pipeline.contracts.reject_reasons import CONTRADICTIONS, FlagReason, RejectReason

INTRODUCTION = """# Reasons and codes

This file is made by `make docs` from `pipeline/contracts`. Why each gate holds or flags a price is in
[gates before publishing](../explanation/price-gates.md).
"""

REJECTS = """The table `rejects` has each such row; `detail` says what it lacks. A price that is held was
read, and later readings, the market or a person's review may release it."""


def page() -> str:
    """The whole file."""
    return "\n".join([INTRODUCTION, *(f"{part}\n" for part in _parts())]).rstrip() + "\n"


def _parts() -> Iterator[str]:
    yield "## Why a row became no offer"
    yield REJECTS
    rejects = ([code(each), text(each.sentence), "held" if each.held else ""] for each in RejectReason)
    yield table(["reason", "meaning", ""], rejects)
    yield "## Why a price is in doubt"
    yield "The offer is published with this `flag_reason`, and not ranked."
    notes = dict.fromkeys(CONTRADICTIONS, "contradicts other prices of its source")
    yield table(["flag", ""], ([code(each), notes.get(each, "")] for each in FlagReason))
    yield "## How reading a source ended"
    yield _sentences(SourceResult)
    yield "## How a request or reading ended, in detail"
    yield _sentences(OutcomeCode)
    yield "## Incidents"
    yield "The table `incidents` has those of the last 30 days, with what was done about each."
    yield _sentences(IncidentKind)


def _sentences(codes: Iterable[CodeWithSentence]) -> str:
    return table(["code", "meaning"], ([code(each), text(each.sentence)] for each in codes))
