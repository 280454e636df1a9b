"""catalog/gpus.csv: complete, dense rates only, consistent within itself and within each family.

Each test lists every row that is wrong."""

import csv
from collections import defaultdict

import pytest

from pipeline.catalog.tables import catalog_rows
from pipeline.gpus import catalogue
from pipeline.gpus.label import parse_label
from pipeline.gpus.tokens import split_words
from pipeline.home import paths
from tests.gpus.tables import Row, rows

with (paths.CATALOG_DIR / "gpus.csv").open(encoding="utf-8", newline="") as _file:
    ROWS: list[Row] = list(csv.DictReader(_file))
BY_ID = {row["gpu_id"]: row for row in ROWS}
CARDS = [row for row in ROWS if not row["derived_from"]]
GENERIC = [row for row in ROWS if row["derived_from"]]
FULL = [row for row in CARDS if row["has_full_specs"] == "true"]

FULL_SPEC_COLUMNS = (
    *("memory_gb", "memory_type", "bandwidth_gb_s", "fp16_dense_tflops", "fp32_tflops", "tdp_w", "year"),
    "usable_memory_gib",
)
ENDINGS_OF_NUMBERS = ("_gb", "_gb_s", "tflops", "_w", "_gib", "year", "per_node", "per_board")


def _number(row: Row, column: str) -> float:
    """Return a number of a row, or 0 if the row does not state it."""
    return float(row[column] or 0)


def test_rows_are_complete_and_differ() -> None:
    assert len(CARDS) >= 140
    assert len(FULL) >= 90
    assert len(BY_ID) == len(ROWS)
    kinds = [(row["vendor"], row["model"], row["form_factor"], row["memory_gb"]) for row in ROWS]
    assert len(set(kinds)) == len(kinds)
    wrong = []
    for row in ROWS:
        numbers = [value for name, value in row.items() if name.endswith(ENDINGS_OF_NUMBERS) and value]
        is_complete = all(row[column] for column in FULL_SPEC_COLUMNS)
        sound = {
            "id": row["gpu_id"] == row["gpu_id"].lower() and " " not in row["gpu_id"],
            "source": bool(row["source"]),
            "confidence": row["confidence"] in ("high", "medium", "low"),
            "positive numbers": all(float(number) > 0 for number in numbers),
            "full specs": (row["has_full_specs"] == "true") == is_complete,
            "nvlink": bool(row["nvlink_gb_s"]) == bool(row["nvlink_topology"]),
            "topology": row["nvlink_topology"] in ("", "switched", "bridge", "mesh"),
        }
        wrong += [(row["gpu_id"], what) for what, is_sound in sound.items() if not is_sound]
    assert wrong == []


def test_a_card_of_unknown_form_has_the_specs_of_its_slowest_sibling() -> None:
    def speed(sibling: Row) -> tuple[float, float, float]:
        peak = _number(sibling, "bf16_dense_tflops") or _number(sibling, "fp16_dense_tflops")
        return peak, _number(sibling, "bandwidth_gb_s"), _number(sibling, "nvlink_gb_s")

    own = {"gpu_id", "form_factor", "derived_from", "notes", "usable_memory_gib"}
    wrong = []
    for row in GENERIC:
        siblings = [c for c in CARDS if (c["model"], c["memory_gb"]) == (row["model"], row["memory_gb"])]
        complete = [sibling for sibling in siblings if sibling["has_full_specs"] == "true"]
        slowest = min(complete, key=speed)
        taken = {k: v for k, v in row.items() if k not in own}
        given = {k: v for k, v in slowest.items() if k not in own}
        smallest = min(_number(sibling, "usable_memory_gib") for sibling in complete)
        memory = _number(row, "usable_memory_gib")
        stated = (row["derived_from"], row["form_factor"], memory, taken)
        if stated != (slowest["gpu_id"], "", smallest, given) or len(siblings) < 2:
            wrong.append(row["gpu_id"])
    assert GENERIC
    assert wrong == []


def test_every_model_and_memory_with_several_forms_has_a_card_for_an_unknown_form() -> None:
    forms: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in CARDS:
        forms[row["model"], row["memory_gb"]].add(row["form_factor"])
    generic = {(row["model"], row["memory_gb"]) for row in GENERIC}
    stated = catalogue.EXPLICIT_FORM_FACTORS | {"PCIe-NVLink"}
    lacking = [
        kind
        for kind, names in forms.items()
        if len(names - stated) > 1 and "" not in names and kind not in generic
    ]
    assert lacking == []


WITHOUT_BF16 = {"Kepler", "Maxwell", "Pascal", "Volta", "Turing"}
WITHOUT_FP8 = {"Ampere", "Volta", "CDNA2", "RDNA3"}
GENERATION_OF_PCIE = {"Volta": 3, "Turing": 3, "Ampere": 4, "Ada": 4, "Hopper": 5}


def test_rates_are_dense_measured_rates_below_them_and_as_their_architecture_has_them() -> None:
    assert {row["architecture"] for row in ROWS} >= WITHOUT_BF16 | WITHOUT_FP8 | GENERATION_OF_PCIE.keys()
    wrong = []
    for row in FULL:
        bf16, fp16, fp8, fp4 = (_number(row, f"{p}_dense_tflops") for p in ("bf16", "fp16", "fp8", "fp4"))
        measured = [(_number(row, f"gemm_{k}_measured_tflops"), _number(row, f"{k}_dense_tflops"))
                    for k in ("bf16", "fp16")]  # fmt: skip
        is_ultra = "Ultra" in row["architecture"] or row["segment"] != "datacenter"
        devices = int(row["gpus_per_board"]) if row["form_factor"] == "OAM" else 1
        usable = _number(row, "usable_memory_gib") * devices / _number(row, "memory_gb")
        sound = {
            # The MI100 has half its fp16 rate in bf16.
            "fp16": not bf16 or row["gpu_id"] == "mi100" or fp16 == pytest.approx(bf16, rel=0.01),
            "fp8": not (bf16 and fp8)
            or row["architecture"] == "Gaudi"
            or fp8 == pytest.approx(2 * bf16, rel=0.03),
            "fp4": not (fp8 and fp4) or is_ultra or fp4 == pytest.approx(2 * fp8, rel=0.03),
            # Consumer cards boost at most 15% above the clock of their data sheet.
            "measured": all(not (rate and peak) or 0.35 < rate / peak < 1.15 for rate, peak in measured),
            "usable memory": 0.85 < usable <= 1,
        }
        wrong += [(row["gpu_id"], what) for what, is_sound in sound.items() if not is_sound]
    for row in ROWS:
        architecture = row["architecture"]
        if architecture in WITHOUT_BF16 and row["bf16_dense_tflops"]:
            wrong.append((row["gpu_id"], "bf16"))
        if architecture in WITHOUT_FP8 and row["fp8_dense_tflops"]:
            wrong.append((row["gpu_id"], "fp8"))
        if _number(row, "pcie_gen") != GENERATION_OF_PCIE.get(architecture, _number(row, "pcie_gen")):
            wrong.append((row["gpu_id"], "pcie_gen"))
    assert wrong == []


def test_published_specifications_are_in_the_catalogue() -> None:
    """From vendors and benchmark authors, each with its source."""
    wrong = []
    for published in rows("published_gpu_specs.csv"):
        row = BY_ID[published["gpu_id"]]
        for column in ("memory_gb", "bandwidth_gb_s", "tdp_w"):
            if _number(row, column) != _number(published, column):
                wrong.append((row["gpu_id"], column))
        rates = [_number(row, column) for column in ("bf16_dense_tflops", "fp16_dense_tflops")]
        rate = _number(published, "bf16_or_fp16_dense_tflops")
        if rate not in [pytest.approx(each, abs=0.01) for each in rates]:
            wrong.append((row["gpu_id"], "rate"))
    assert wrong == []


def test_other_tables_name_existing_cards_and_devices() -> None:
    assert catalogue.spellings()
    applicable = {"", *BY_ID, *(row["form_factor"] for row in ROWS)}
    wrong: list[object] = [
        row
        for row in catalog_rows("provider_gpus.csv")
        if row["gpu_id"] not in BY_ID
        or row["applies_to"] not in applicable
        or row["basis"] not in ("offers", "naming")
        or not (row["reason"] and row["source"])
    ]
    with_full_specs = {row["gpu_id"] for row in FULL}
    wrong += [row for row in catalog_rows("measured_runs.csv") if row["gpu"] not in with_full_specs]
    for row in catalog_rows("instance_types.csv"):
        label, _ = parse_label(row["gpu"])
        if row["gpu"] and "{" not in row["gpu"] and not (label.models or label.accelerator):
            wrong.append(row)
    models = {row["model"] for row in ROWS}
    wrong += [row for row in catalog_rows("gpu_order.csv") if not {row["older"], row["successor"]} <= models]
    wrong += [row for row in catalog_rows("gpu_price_bounds.csv") if row["gpu_id"] not in BY_ID]
    assert wrong == []


def test_words_that_may_stand_beside_a_name_are_reviewed() -> None:
    """Each once, with where it was seen and why it does not change the card."""
    words = catalog_rows("label_words.csv")
    vendors = {card.vendor for card in catalogue.cards()}
    wrong = [
        row
        for row in words
        if not (row["seen_in"] and row["reason"])
        or (row["kind"] == "brand") != (row["vendor"] in vendors)
        or (row["kind"] == "phrase") != (" " in row["word"])
        or " ".join(split_words(row["word"])) != row["word"]
    ]
    names = {word for name in (*catalogue.spellings(), *catalogue.accelerators()) for word in name}
    wrong += [row for row in words if row["word"] in names and row["kind"] != "slice"]
    assert wrong == []
    assert len({row["word"] for row in words}) == len(words)
