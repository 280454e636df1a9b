"""docs/reference/sources.md agrees with the catalogue, the readers and the sample pages."""

from docs.generate.sources import page
from pipeline.catalog.source_config import asked_configs


def test_table_states_why_a_source_is_not_asked() -> None:
    rows = {line.split("]")[0][3:]: line for line in page().splitlines() if line.startswith("| [")}
    assert set(rows) == set(asked_configs())
    assert "no: its terms forbid it" in rows["vast"]
    assert "| [forbidden](https://vast.ai/terms), read on 2026-10-05 |" in rows["vast"]
    assert "no: needs `PRIME_API_KEY`" in rows["primeintellect"]
    assert "| yes; with `GCP_API_KEY`: " in rows["gcp"]
    assert "| yes | 1 |" in rows["coreweave"]
