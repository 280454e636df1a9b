"""The catalogue of workloads: expanded, complete, and refused when it is wrong."""

from pathlib import Path

import pytest

from pipeline.catalog.source_config import CatalogError
from pipeline.catalog.workloads import workloads

SCENARIO = """
grid: []
scenarios:
  - workload: mine
    title: Mine
    model: llama-3.1-8b
    method: {method}
    seq_len: 2048
    {counts}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "workloads.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_grid_is_models_by_methods_by_tokens(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
grid:
  - {models: [a, b], methods: [lora, full], tokens: [10M, 1B], seq_len: 2048}
scenarios: []
""",
    )
    rows = workloads(path)
    assert [row["workload"] for row in rows] == [
        "a-lora-10m", "a-lora-1b", "a-full-10m", "a-full-1b",
        "b-lora-10m", "b-lora-1b", "b-full-10m", "b-full-1b",
    ]  # fmt: skip
    assert {row["tokens"] for row in rows} == {10_000_000, 1_000_000_000}
    assert {(row["method"], row["lora_rank"]) for row in rows} == {("lora", 16), ("full", None)}


def test_tokens_are_examples_times_tokens_times_epochs(tmp_path: Path) -> None:
    counts = "lora_rank: 8\n    examples: 2000\n    tokens_per_example: 500\n    epochs: 3"
    (row,) = workloads(write(tmp_path, SCENARIO.format(method="lora", counts=counts)))
    assert row["tokens"] == 3_000_000


def test_a_workload_that_leaves_settings_open_has_the_defaults_of_a_job(tmp_path: Path) -> None:
    scenario = SCENARIO.format(method="lora", counts="tokens: 1M").replace("    seq_len: 2048\n", "")
    (row,) = workloads(write(tmp_path, scenario))
    assert (row["seq_len"], row["lora_rank"], row["max_gpus"], row["max_hours"]) == (2048, 16, 8, None)


def test_a_wrong_workload_is_refused(tmp_path: Path) -> None:
    for method, counts, message in (
        ("lora", "lora_rank: 8\n    tokens: 0", "must be above 0"),
        ("full", "lora_rank: 8\n    tokens: 1M", "lora_rank"),
        ("full", "examples: 5", "give either tokens"),
        (
            "full",
            "tokens: 1M\n    examples: 5\n    tokens_per_example: 5\n    epochs: 1",
            "tokens is 1e\\+06, but its examples and epochs give",
        ),
        ("dora", "tokens: 1M", "method"),
        ("full", "tokens: many", "not a number of tokens, such as 100M"),
        ("full", "tokens: 1M\n    colour: red", "colour"),
    ):
        path = write(tmp_path, SCENARIO.format(method=method, counts=counts))
        with pytest.raises(CatalogError, match=message):
            workloads(path)


def test_a_missing_file_and_a_repeated_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="is missing"):
        workloads(tmp_path / "nowhere.yaml")
    block = "{models: [a], methods: [full], tokens: [1M], seq_len: 2048}"
    path = write(tmp_path, f"grid: [{block}, {block}]\nscenarios: []\n")
    with pytest.raises(CatalogError, match="twice: a-full-1m"):
        workloads(path)


def test_the_catalogue_covers_common_questions() -> None:
    rows = workloads()
    assert 150 <= len(rows) <= 300
    assert {row["method"] for row in rows} == {"lora", "qlora", "full", "pretrain"}
    assert min(row["tokens"] for row in rows) <= 10e6
    assert max(row["tokens"] for row in rows) >= 100e9
    asked = {
        "llama-2-7b", "llama-2-13b", "llama-2-70b", "llama-3.1-8b", "llama-3.1-70b", "mistral-7b-v0.3",
        "codellama-34b", "qwen2.5-14b", "mixtral-8x22b",
    }  # fmt: skip
    assert asked <= {row["model"] for row in rows}
    scenarios = {row["workload"] for row in rows if row["scenario"]}
    assert {"13b-lora-10b-tokens", "weekly-13b-100b-tokens", "llama-2-70b-code"} <= scenarios
