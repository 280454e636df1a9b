"""Parameters of the catalogue's models follow from their columns, their columns from their config.json."""

import csv
import json
from typing import Any

import duckdb
import pytest

from pipeline.catalog.model_shapes import Shape, counted
from pipeline.home import paths
from pipeline.model.architectures import shape_of

MODELS = {
    row["model"]: row
    for row in csv.DictReader((paths.CATALOG_DIR / "models.csv").read_text(encoding="utf-8").splitlines())
}
POSITIONS_NOT_COUNTED = "santacoder"
"""Its table of positions, 0.37% of its parameters, is not among those of catalog/models.csv."""
UNEXPLAINED = 0.0005
"""Totals that are rounded to five digits, and biases and norms."""


@pytest.fixture(scope="module")
def shapes() -> dict[str, Shape]:
    return {
        model: Shape.model_validate({name: row[name] for name in Shape.model_fields if row[name]})
        for model, row in MODELS.items()
    }


def test_parameters_follow_from_the_columns(shapes: dict[str, Shape]) -> None:
    wrong = [
        (model, name, MODELS[model][name], value)
        for model, shape in shapes.items()
        for name, value in counted(shape).model_dump().items()
        if value != pytest.approx(int(MODELS[model][name]), rel=UNEXPLAINED)
    ]
    assert wrong == []


def test_columns_follow_from_the_config(shapes: dict[str, Shape]) -> None:
    lines = (paths.CATALOG_DIR / "model_configs.jsonl").read_text(encoding="utf-8").splitlines()
    configs: dict[str, dict[str, Any]] = {row["model"]: row["config"] for row in map(json.loads, lines)}
    found = {model: shape_of(model, config) for model, config in configs.items()}
    positions = found[POSITIONS_NOT_COUNTED]
    assert positions.extra_embedding_params == 2048 * 2048
    found[POSITIONS_NOT_COUNTED] = positions.model_copy(update={"extra_embedding_params": None})
    assert found.keys() == shapes.keys()
    assert [(model, found[model], shapes[model]) for model in shapes if found[model] != shapes[model]] == []


PUBLISHED_B = {
    "deepseek-v3": (671, 37), "kimi-k2": (1000, 32), "glm-4.5-air": (106, 12), "glm-4.5": (355, 32),
    "glm-5": (744, 40), "qwen3.5-35b-a3b": (35, 3), "qwen3.5-397b-a17b": (397, 17),
    "qwen3-next-80b-a3b": (80, 3), "qwen3-coder-480b-a35b": (480, 35), "llama-4-scout": (109, 17),
    "llama-4-maverick": (400, 17), "minimax-m2": (230, 10), "gemma-4-26b-a4b": (26, 4),
    "nemotron-3-nano-30b-a3b": (31.6, 3.2), "granite-4.0-h-small": (32, 9), "mistral-small-4": (119, 6.5),
    "deepseek-v2-lite": (15.7, 2.4), "moonlight-16b-a3b": (16, 3), "olmoe-1b-7b": (6.92, 1.3),
    "gemma-3-270m": (0.268, 0.268), "glm-4-9b": (9.4, 9.4), "gpt-3-175b": (175, 175),
    "smollm3-3b": (3.08, 3.08), "seed-oss-36b": (36, 36), "olmo-3-32b": (32, 32),
}  # fmt: skip
"""Parameters and active parameters, in 10^9."""


def test_sizes_are_those_that_their_makers_publish() -> None:
    """Makers round, count one token's share with or without embeddings, and add vision towers."""
    wrong = []
    for model, (total_b, active_b) in PUBLISHED_B.items():
        total, linear, active = (
            int(MODELS[model][f"params_{name}"]) / 1e9 for name in ("total", "linear", "active")
        )
        if total != pytest.approx(total_b, rel=0.04) or not (
            active - (total - linear) < 1.1 * active_b and active > 0.93 * active_b
        ):
            wrong.append((model, total, active))
    assert wrong == []


def test_measured_runs_are_of_known_models_and_cards(model: duckdb.DuckDBPyConnection) -> None:
    cards = {row[0] for row in model.execute("SELECT gpu_id FROM main.gpus WHERE has_full_specs").fetchall()}
    runs = model.execute("SELECT run_id, model, gpu FROM main.measured_runs").fetchall()
    assert [run for run in runs if run[1] not in MODELS or run[2] not in cards] == []
    assert len({run_id for run_id, *_ in runs}) == len(runs)
