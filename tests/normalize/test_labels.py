"""Labels of many sellers against answers reviewed by hand, and the shared sample where it is at hand."""

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pipeline.offers.gpu_matching import Identity, catalogue, identify, instance_types, match

SAMPLE = Path(__file__).parents[3] / "shared" / "labels_sample.csv"
NOT_GPUS = {"none", "aws", "google"}

Row = Mapping[str, str]


def _rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _identify(row: Row) -> Identity:
    return identify(
        row["raw_label"],
        provider=row["provider"],
        kind="instance_type" if row["kind"] == "instance_type" else "gpu_name",
        context=row["context"],
        gpu_count=float(row["gpu_count"]) if row["gpu_count"] else None,
    )


@pytest.mark.parametrize(
    "row",
    _rows(Path(__file__).with_name("labels.csv")),
    ids=lambda row: f"{row['provider']}: {row['raw_label']}",
)
def test_a_label_is_the_card_that_its_seller_means(row: Row) -> None:
    found = _identify(row)
    assert (found.gpu_id if found.status == "matched" else found.status) == row["expected"]
    if row["expected_gpu_count"]:
        assert found.gpu_count == pytest.approx(float(row["expected_gpu_count"]), abs=0.001)


def _same(one: str, other: str) -> bool:
    return re.sub(r"[^a-z0-9]", "", one.lower()) == re.sub(r"[^a-z0-9]", "", other.lower())


def _verdict(row: Row) -> str:
    """right, form (right but for the form factor), open (not matched) or wrong."""
    found = _identify(row)
    if row["vendor"] in NOT_GPUS:
        return "right" if found.status == "not_a_gpu" else "wrong"
    if found.status != "matched":
        return "open"
    memory = float(row["memory_gb"]) if row["memory_gb"] else None
    if (
        found.vendor != row["vendor"]
        or not _same(found.model or "", row["model"])
        or found.memory_gb != memory
    ):
        return "wrong"
    if row["gpu_count"] and found.gpu_count != float(row["gpu_count"]):
        return "wrong"
    return "right" if not row["variant"] or found.form_factor == row["variant"] else "form"


needs_sample = pytest.mark.skipif(not SAMPLE.exists(), reason="the shared sample is not beside the project")


@needs_sample
def test_every_unambiguous_row_of_the_sample_is_right() -> None:
    assert [row for row in _rows(SAMPLE) if row["ambiguous"] == "n" and _verdict(row) != "right"] == []


@needs_sample
def test_no_ambiguous_row_of_the_sample_is_a_wrong_card() -> None:
    verdicts = [_verdict(row) for row in _rows(SAMPLE) if row["ambiguous"] == "y"]
    assert "wrong" not in verdicts
    # Forms that only a remark tells stay open.
    assert verdicts.count("form") <= 3


@needs_sample
def test_no_rule_contains_a_whole_label_of_the_sample() -> None:
    labels = {re.sub(r"[\s_\-/]+", "-", row["raw_label"].strip().lower()) for row in _rows(SAMPLE)}
    patterns = {row["pattern"].replace("\\", "") for row in catalogue.rows("instance_types.csv")}
    aliases = {row["alias"].replace(" ", "-") for row in catalogue.rows("gpu_aliases.csv")}
    assert labels & (patterns | aliases) == set()


@pytest.fixture
def without_provider_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The normalizer without what it knows of any provider by name: a new provider's view."""
    monkeypatch.setattr(catalogue, "provider_rules", lambda provider, upstream=None: ())
    monkeypatch.setattr(instance_types, "_index", lambda provider, index=instance_types._index: index(""))
    match.clear_caches()
    yield
    match.clear_caches()


@needs_sample
@pytest.mark.usefixtures("without_provider_tables")
def test_a_provider_that_is_not_in_the_tables_gets_no_wrong_card() -> None:
    verdicts = [_verdict(row) for row in _rows(SAMPLE) if row["ambiguous"] == "n"]
    assert verdicts.count("wrong") == 0
    assert verdicts.count("open") <= 0.03 * len(verdicts)
