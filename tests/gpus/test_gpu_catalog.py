"""catalog/gpus.csv: complete, dense rates only, consistent within itself and within each family."""

import csv
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.catalog.tables import catalog_rows
from pipeline.gpus import catalogue
from pipeline.gpus.label import parse_label
from pipeline.home import paths

Row = Mapping[str, str]


def _rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


PUBLISHED_SPECS = _rows(Path(__file__).with_name("published_gpu_specs.csv"))
"""Specifications from vendors and benchmark authors, each with its source."""
ROWS = _rows(paths.CATALOG_DIR / "gpus.csv")
BY_ID = {row["gpu_id"]: row for row in ROWS}
CARDS = [row for row in ROWS if not row["derived_from"]]
GENERIC = [row for row in ROWS if row["derived_from"]]
FULL = [row for row in CARDS if row["has_full_specs"] == "true"]

FULL_SPEC_COLUMNS = (
    "memory_gb",
    "memory_type",
    "bandwidth_gb_s",
    "fp16_dense_tflops",
    "fp32_tflops",
    "tdp_w",
    "year",
    "usable_memory_gib",
)
NUMBERS = tuple(
    name
    for name in ROWS[0]
    if name.endswith(("_gb", "_gb_s", "tflops", "_w", "_gib", "year", "per_node", "per_board"))
)


def _number(row: Row, column: str) -> float | None:
    return float(row[column]) if row[column] else None


def test_the_catalogue_has_at_least_140_cards_and_90_with_full_specs() -> None:
    assert len(CARDS) >= 140
    assert len(FULL) >= 90


def test_every_id_is_unique_and_lower_case() -> None:
    assert len(BY_ID) == len(ROWS)
    assert all(gpu_id == gpu_id.lower() and " " not in gpu_id for gpu_id in BY_ID)


def test_every_row_has_a_source_and_a_confidence() -> None:
    assert [row["gpu_id"] for row in ROWS if not row["source"]] == []
    assert {row["confidence"] for row in ROWS} <= {"high", "medium", "low"}


def test_numbers_are_positive_numbers() -> None:
    for row in ROWS:
        for column in NUMBERS:
            value = _number(row, column)
            assert value is None or value > 0, (row["gpu_id"], column)


def test_full_specs_means_that_every_column_has_a_value() -> None:
    for row in CARDS:
        complete = all(row[column] for column in FULL_SPEC_COLUMNS)
        assert (row["has_full_specs"] == "true") == complete, row["gpu_id"]


def test_no_two_rows_are_the_same_card() -> None:
    kinds = [(row["vendor"], row["model"], row["form_factor"], row["memory_gb"]) for row in ROWS]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize("row", GENERIC, ids=lambda row: row["gpu_id"])
def test_a_card_of_unknown_form_has_the_specs_of_its_slowest_sibling(row: Row) -> None:
    siblings = [c for c in CARDS if (c["model"], c["memory_gb"]) == (row["model"], row["memory_gb"])]
    assert len(siblings) > 1
    assert row["form_factor"] == ""

    def speed(sibling: Row) -> tuple[float, float, float]:
        peak = _number(sibling, "bf16_dense_tflops") or _number(sibling, "fp16_dense_tflops") or 0
        return peak, _number(sibling, "bandwidth_gb_s") or 0, _number(sibling, "nvlink_gb_s") or 0

    slowest = min((s for s in siblings if s["has_full_specs"] == "true"), key=speed)
    assert row["derived_from"] == slowest["gpu_id"]
    distinct = {"gpu_id", "form_factor", "derived_from", "notes", "usable_memory_gib"}
    assert {k: v for k, v in row.items() if k not in distinct} == {
        k: v for k, v in slowest.items() if k not in distinct
    }
    smallest = min(_number(s, "usable_memory_gib") or 0 for s in siblings if s["has_full_specs"] == "true")
    assert _number(row, "usable_memory_gib") == smallest


def test_every_model_and_memory_with_several_forms_has_a_card_for_an_unknown_form() -> None:
    forms: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in CARDS:
        forms[row["model"], row["memory_gb"]].add(row["form_factor"])
    generic = {(row["model"], row["memory_gb"]) for row in GENERIC}
    ordinary = catalogue.EXPLICIT_FORM_FACTORS | {"PCIe-NVLink"}
    for kind, names in forms.items():
        open_forms = names - ordinary
        assert len(open_forms) <= 1 or "" in names or kind in generic, kind


def test_rates_are_dense() -> None:
    for row in FULL:
        bf16, fp8, fp4 = (_number(row, f"{p}_dense_tflops") for p in ("bf16", "fp8", "fp4"))
        fp16 = _number(row, "fp16_dense_tflops") or 0
        if bf16 and row["gpu_id"] != "mi100":  # the MI100 has half its fp16 rate in bf16
            assert fp16 == pytest.approx(bf16, rel=0.01), row["gpu_id"]
        if bf16 and fp8 and row["architecture"] != "Gaudi":
            assert fp8 / bf16 == pytest.approx(2, rel=0.03), row["gpu_id"]
        if fp8 and fp4 and row["segment"] == "datacenter" and "Ultra" not in row["architecture"]:
            assert fp4 / fp8 == pytest.approx(2, rel=0.03), row["gpu_id"]


def test_a_measured_rate_is_not_above_the_peak() -> None:
    for row in FULL:
        for kind in ("bf16", "fp16"):
            measured, peak = (
                _number(row, f"gemm_{kind}_measured_tflops"),
                _number(row, f"{kind}_dense_tflops"),
            )
            if measured and peak:
                # Consumer cards boost at most 15% above the clock of their data sheet.
                assert 0.35 < measured / peak < 1.15, (row["gpu_id"], kind)


@pytest.mark.parametrize(
    ("architecture", "generation"), [("Volta", 3), ("Turing", 3), ("Ampere", 4), ("Ada", 4), ("Hopper", 5)]
)
def test_the_cards_of_an_architecture_have_one_generation_of_pcie(architecture: str, generation: int) -> None:
    rows = [row for row in ROWS if row["architecture"] == architecture]
    assert rows
    assert [row["gpu_id"] for row in rows if _number(row, "pcie_gen") != generation] == []


@pytest.mark.parametrize("architecture", ["Kepler", "Maxwell", "Pascal", "Volta", "Turing"])
def test_architectures_before_ampere_have_no_bf16(architecture: str) -> None:
    rows = [row for row in ROWS if row["architecture"] == architecture]
    assert rows
    assert [row["gpu_id"] for row in rows if row["bf16_dense_tflops"]] == []


@pytest.mark.parametrize("architecture", ["Ampere", "Volta", "CDNA2", "RDNA3"])
def test_architectures_without_fp8(architecture: str) -> None:
    assert [r["gpu_id"] for r in ROWS if r["architecture"] == architecture and r["fp8_dense_tflops"]] == []


@pytest.mark.parametrize("model", ["A100", "H100", "H200", "V100", "P100", "H800", "A800"])
def test_an_sxm_board_is_at_least_as_fast_as_the_pcie_card(model: str) -> None:
    cards = [row for row in FULL if row["model"] == model]
    boards = [row for row in cards if row["form_factor"] == "SXM"]
    others = [row for row in cards if row["form_factor"] not in ("SXM", "")]
    pairs = [(b, o) for b in boards for o in others if b["memory_gb"] == o["memory_gb"]]
    assert pairs
    for board, other in pairs:
        for column in ("fp16_dense_tflops", "bandwidth_gb_s", "tdp_w"):
            assert (_number(board, column) or 0) >= (_number(other, column) or 0), (column, board["gpu_id"])


def test_specifications_that_are_often_published_wrong() -> None:
    assert _number(BY_ID["a100-pcie-80gb"], "bandwidth_gb_s") == 1935
    assert _number(BY_ID["a100-sxm-80gb"], "bandwidth_gb_s") == 2039
    assert _number(BY_ID["l40s"], "bf16_dense_tflops") == 362.05
    assert _number(BY_ID["a10g"], "bf16_dense_tflops") == 70
    assert _number(BY_ID["h100-pcie-80gb"], "bf16_dense_tflops") == 756


def test_nvlink_bandwidth_comes_with_its_topology() -> None:
    for row in ROWS:
        assert bool(row["nvlink_gb_s"]) == bool(row["nvlink_topology"]), row["gpu_id"]
    assert {row["nvlink_topology"] for row in ROWS} == {"", "switched", "bridge", "mesh"}


def test_usable_memory_is_below_nominal() -> None:
    for row in FULL:
        devices = int(row["gpus_per_board"]) if row["form_factor"] == "OAM" else 1
        share = (_number(row, "usable_memory_gib") or 0) * devices / (_number(row, "memory_gb") or 1)
        assert 0.85 < share <= 1.0, row["gpu_id"]


@pytest.mark.parametrize("published", PUBLISHED_SPECS, ids=lambda row: row["gpu_id"])
def test_a_published_specification_is_in_the_catalogue(published: Row) -> None:
    row = BY_ID[published["gpu_id"]]
    for column in ("memory_gb", "bandwidth_gb_s", "tdp_w"):
        assert _number(row, column) == _number(published, column), column
    rates = [_number(row, column) or 0 for column in ("bf16_dense_tflops", "fp16_dense_tflops")]
    assert _number(published, "bf16_or_fp16_dense_tflops") in [
        pytest.approx(rate, abs=0.01) for rate in rates
    ]


def test_every_measured_run_is_of_a_card_with_full_specs() -> None:
    gpu_ids = {row["gpu"] for row in _rows(paths.CATALOG_DIR / "measured_runs.csv")}
    assert gpu_ids <= {row["gpu_id"] for row in FULL}


def test_the_tables_of_the_matcher_name_existing_cards() -> None:
    assert catalogue.spellings()
    applicable = {"", *BY_ID, *(card["form_factor"] for card in ROWS)}
    for row in catalog_rows("provider_gpus.csv"):
        assert row["gpu_id"] in BY_ID, row
        assert row["applies_to"] in applicable, row
        assert row["basis"] in {"offers", "naming"}
        assert row["reason"]
        assert row["source"]


def test_every_instance_type_is_of_a_known_device() -> None:
    for row in catalog_rows("instance_types.csv"):
        if "{" in row["gpu"] or not row["gpu"]:
            continue
        label, _ = parse_label(row["gpu"])
        assert label.models or label.accelerator, row["pattern"]
