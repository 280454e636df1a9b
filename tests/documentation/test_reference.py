"""The generated pages are up to date, and tables of hand-written ones name what exists."""

import re
import tomllib

from docs.generate import DOCS, PAGES
from docs.generate.sources import page as sources_page
from pipeline.catalog.source_config import asked_configs


def test_the_generated_pages_are_up_to_date() -> None:
    stale = [name for name, made in PAGES.items() if (DOCS / name).read_text(encoding="utf-8") != made()]
    assert stale == [], "run `make docs`"


def test_the_page_of_environment_variables_has_all_and_no_others() -> None:
    page = (DOCS / "reference" / "environment.md").read_text(encoding="utf-8")
    code = " ".join(path.read_text(encoding="utf-8") for path in (DOCS.parent / "pipeline").rglob("*.py"))
    variables = set(re.findall(r"\bGPUFARE_[A-Z_]+\b", code))
    assert set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) == variables


def test_the_table_of_rooms_has_each_in_the_order_of_their_layers() -> None:
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (each["layers"] for each in settings["tool"]["importlinter"]["contracts"] if "layers" in each)
    ranks = {room: rank for rank, layer in enumerate(layers) for room in layer.split(" | ")}
    page = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    found = [
        name.removesuffix(".py").replace("/", ".") for name in re.findall(r"^\| `([\w/.]+)` \|", page, re.M)
    ]
    rooms = [room for room in found if room in ranks]
    assert set(rooms) == set(ranks)
    assert [ranks[room] for room in rooms] == sorted(ranks.values())


def test_the_table_of_sources_states_why_a_source_is_not_asked() -> None:
    rows = {line.split("]")[0][3:]: line for line in sources_page().splitlines() if line.startswith("| [")}
    assert set(rows) == set(asked_configs())
    assert "no: its terms forbid it" in rows["vast"]
    assert "| [forbidden](https://vast.ai/terms), read on 2026-10-05 |" in rows["vast"]
    assert "no: needs `PRIME_API_KEY`" in rows["primeintellect"]
    assert "| yes; with `GCP_API_KEY`: " in rows["gcp"]
    assert "| yes | 1 |" in rows["coreweave"]
