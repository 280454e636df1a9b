"""docs/reference/reasons.md: every code, with the sentence that explains it."""

from collections.abc import Iterable, Iterator

from docs.generate.markdown import code, table, text
from pipeline.contracts.codes import CodeWithSentence
from pipeline.contracts.incidents import IncidentKind
from pipeline.contracts.outcome import OutcomeCode, SourceResult
from pipeline.contracts.reject_reasons import CONTRADICTIONS, FlagReason, RejectReason

INTRODUCTION = """# Reasons and codes

This file is made by `make docs` from `pipeline/contracts`. [Gates before
publishing](../explanation/price-gates.md) explains why a gate holds or flags a price.
"""

REJECTS = """The table `rejects` lists each rejected row; `detail` names the problem. A held price was read
without error; later readings, the market or a person's review may release it."""


def page() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *(f"{part}\n" for part in _parts())]).rstrip() + "\n"


def _parts() -> Iterator[str]:
    yield "## Why a row did not become an offer"
    yield REJECTS
    rejects = ([code(each), text(each.sentence), "held" if each.held else ""] for each in RejectReason)
    yield table(["reason", "meaning", ""], rejects)
    yield "## Why a price is flagged"
    yield "The offer is published with this `flag_reason`, but not ranked."
    notes = dict.fromkeys(CONTRADICTIONS, "contradicts other prices from its source")
    yield table(["flag", ""], ([code(each), notes.get(each, "")] for each in FlagReason))
    yield "## Outcomes of a source"
    yield _sentences(SourceResult)
    yield "## Outcomes of a request or reading, in detail"
    yield _sentences(OutcomeCode)
    yield "## Incidents"
    yield "The table `incidents` contains the incidents of the last 30 days, with the action taken on each."
    yield _sentences(IncidentKind)


def _sentences(codes: Iterable[CodeWithSentence]) -> str:
    return table(["code", "meaning"], ([code(each), text(each.sentence)] for each in codes))
