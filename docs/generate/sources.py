"""docs/reference/sources.md: a row per source, from catalog/sources, the readers and the sample pages."""

import csv
from decimal import Decimal
from pathlib import Path

from docs.generate.markdown import table
from pipeline.capture.permissions import Choices, why_off
from pipeline.capture.visit import first_requests
from pipeline.catalog.source_config import SourceConfig, asked_configs
from pipeline.sources import source_module

PAGES = Path(__file__).parents[2] / "tests" / "pages"

HEADINGS = (
    "source",
    "asked by default",
    "requests",
    "evidence",
    "offers on its page",
    "share of the provider's GPU offers",
    "terms of use",
    "republishing its prices",
)


INTRODUCTION = """# Sources

This file is made by `make docs` from `catalog/sources`, the readers and `tests/pages`.

By default, gpufare asks {asked} of {all} sources. Off because of their terms of use: {by_terms}; off
without a key: {keyless}; retired: {retired}. No reader has been proven on live pages; the column *evidence*
says what each request and reader is based on.

- **asked by default**: by a `gpufare refresh` without keys or settings. A source whose
  terms forbid automated reading is asked after `gpufare sources enable NAME`, or with a key of your own
  if the column names one; `gpufare sources disable NAME` turns any source off. Sample pages and replays need
  no permission.
- **requests**: the first requests of a capture, without optional keys; + means that answers can lead to
  more. A refresh captures once; it runs once a day unless you schedule more.
- **offers on its page**: offers that the reader finds on the sample page in `tests/pages`.
- **share**: an estimate of the share of the provider's GPU offers that the source shows without a key; empty
  if there is no estimate.
- **terms of use**: what they say about automated reading: *allowed*, *silent* (they were read and do not
  mention it), *forbidden*, or *unknown* (not known to have been read). This is not legal advice, and most of
  the terms were read by other people, who are named in the notes below the table.
- **republishing its prices**: *allowed*, *forbidden*, or *unknown* (the terms are not known to have been
  read with that question in mind), with the day on which they were read. This is not legal advice either.
"""

NOTES = """
## What the terms say, and who read them
"""


def page() -> str:
    """Return the page."""
    sources = list(asked_configs().values())
    counts = {
        "all": len(sources),
        "asked": sum(_why_not(each) is None for each in sources),
        "by_terms": sum(_is_off_by_terms(each) for each in sources),
        "keyless": sum(each.needs_key and each.disabled is None for each in sources),
        "retired": sum(each.disabled is not None for each in sources),
    }
    notes = [f"- **{each.name}** ({each.terms.automated}): {_note(each)}" for each in sources]
    return "\n".join(
        [INTRODUCTION.format(**counts), table(HEADINGS, map(_cells, sources)), NOTES, *notes, ""]
    )


def _cells(config: SourceConfig) -> list[str]:
    return [
        f"[{config.name}]({config.homepage})",
        _asked(config),
        _requests(config),
        f"{config.evidence.level} {config.evidence.date}",
        str(_offers(config)),
        _share(config),
        _terms(config),
        _rights(config),
    ]


def _is_off_by_terms(config: SourceConfig) -> bool:
    return config.disabled is None and why_off(config, Choices(), {}) is not None


def _why_not(config: SourceConfig) -> str | None:
    keys = " and ".join(f"`{name}`" for name in config.key_variables)
    if config.disabled is not None:
        return f"retired: {_text(config.disabled)}"
    if _is_off_by_terms(config):
        return "its terms forbid it" + (f"; {keys} also turns it on" if keys else "")
    return f"needs {keys}" if config.needs_key else None


def _asked(config: SourceConfig) -> str:
    if (why_not := _why_not(config)) is not None:
        return f"no: {why_not}"
    keys = " and ".join(f"`{name}`" for name in config.key_variables)
    return f"yes; with {keys}: {_text(config.coverage.with_key or 'more')}" if keys else "yes"


def _requests(config: SourceConfig) -> str:
    if config.disabled is not None:
        return ""
    environment = dict.fromkeys(config.key_variables, "key") if config.needs_key else {}
    module = source_module(config.name)
    more = config.paging is not None or hasattr(module, "next_requests") or hasattr(module, "retry_requests")
    return f"{len(first_requests(config, module, environment))}{'+' if more else ''}"


def _offers(config: SourceConfig) -> int:
    name = "expected_rates.csv" if config.kind == "exchange_rates" else "expected.csv"
    with (PAGES / config.name / name).open(newline="", encoding="utf-8") as file:
        return sum(1 for _ in csv.DictReader(file))


def _share(config: SourceConfig) -> str:
    coverage = config.coverage
    share = "" if coverage.share is None else f"{_percent(coverage.share)}"
    regions = f"{coverage.regions} regions in all" if coverage.regions else ""
    return "; ".join(filter(None, (share, regions)))


def _percent(share: Decimal) -> str:
    return f"{(100 * share).normalize():f}%"


def _terms(config: SourceConfig) -> str:
    terms = config.terms
    address = f"[{terms.automated}]({terms.url})" if terms.url else terms.automated
    return f"{address}, read on {terms.read_on}" if terms.read_on else address


def _rights(config: SourceConfig) -> str:
    rights = config.rights
    return f"{rights.republishing}, read on {rights.read_on}" if rights.read_on else rights.republishing


def _note(config: SourceConfig) -> str:
    read = _text(config.terms.note) or "no note"
    rights = _text(config.rights.note)
    return f"{read} On republishing: {rights}" if rights else read


def _text(text: str) -> str:
    """Return a note from a YAML file as one line of Markdown."""
    return " ".join(text.split()).replace("|", "\\|")
