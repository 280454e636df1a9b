"""The table of results in docs/explanation/stress.md, between its markers."""

import json
from collections.abc import Sequence
from pathlib import Path

from tests.nightly.stress.runner import Part, Results

BEGIN, END = "<!-- results -->", "<!-- /results -->"
MAX_SHOWN = 12
MAX_CHARACTERS = 220


def table(parts: Sequence[Part], seed: str, folder: Path) -> str:
    """The results of a seed as Markdown, and the problems in words."""
    results = Results(folder)
    runs = [json.loads(line) for line in (folder / "runs.jsonl").read_text(encoding="utf-8").splitlines()]
    machine = runs[-1]
    commits = ", ".join(dict.fromkeys(run["commit"] for run in runs if run["commit"]))
    seconds = sum(result["seconds"] for part in parts for result in results.read(part.name))
    where = f"{machine['cores']} cores, {machine['memory_gib']} GiB of memory, {machine['system']}"
    lines = [
        f"{machine['at'][:10]}, seed {seed}; {where}; commit {commits or 'unknown'}; "
        f"{seconds / 60:.0f} minutes of work of one core.",
        "",
        "| part | what was done | units | with a problem |",
        "|---|---|---|---|",
    ]
    problems: list[str] = []
    for part in parts:
        found = results.read(part.name)
        bad = [result for result in found if result["problems"]]
        units = f"{len(results.units(part.name) & set(part.units(seed)))} of {len(part.units(seed))}"
        done = part.figures(found) if found else "not run"
        lines.append(f"| `{part.name}` | {part.title}: {done} | {units} | {len(bad)} |")
        for result in bad[:MAX_SHOWN]:
            first = " ".join(str(result["problems"][0]).split()).replace(str(folder), "").replace("|", "/")
            more = f" (and {len(result['problems']) - 1} more)" if len(result["problems"]) > 1 else ""
            problems.append(f"- `{part.name}` {result['unit']}: {_plain(first)}{more}")
        if len(bad) > MAX_SHOWN:
            problems.append(f"- `{part.name}`: {len(bad) - MAX_SHOWN} more units with a problem")
    return "\n".join([*lines, *(["", "Problems:", "", *problems] if problems else [])])


def _plain(text: str) -> str:
    """A problem without markup and without the places of this machine."""
    words = [word for word in text.replace("<", "‹").replace("`", "'").split() if not _is_place(word)]
    return " ".join(words)[:MAX_CHARACTERS]


def _is_place(word: str) -> bool:
    return word.lstrip("'\"(").startswith("/") or "site-packages" in word


def write(document: Path, text: str) -> None:
    """Put the table between the markers of a document."""
    before, _, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    document.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
