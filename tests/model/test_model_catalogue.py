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


def test_columns_go_together(shapes: dict[str, Shape]) -> None:
    wrong = []
    for model, shape in shapes.items():
        rules = {
            "experts": 1 <= shape.experts_active <= shape.experts,
            "heads": shape.heads % shape.kv_heads == 0,
            "attention": (shape.full_attention_layers or 0) + (shape.linear_attention_layers or 0)
            <= shape.layers,
            "window": bool(shape.sliding_window) <= (shape.full_attention_layers is not None),
            "linear": bool(shape.linear_attention_layers) == bool(shape.linear_mixer_params),
            "dense": (shape.dense_layers is None) == (shape.dense_intermediate is None),
            # What no other column explains is a small part.
            "extra": abs(shape.extra_linear_params or 0) < 0.1 * int(MODELS[model]["params_linear"]),
            "source": bool(MODELS[model]["source"]),
        }
        wrong += [(model, name) for name, holds in rules.items() if not holds]
    assert wrong == []


PUBLISHED_B = {
    "deepseek-v3": (671, 37), "kimi-k2": (1000, 32), "glm-4.5-air": (106, 12), "glm-4.5": (355, 32),
    "glm-5": (744, 40), "qwen3.5-35b-a3b": (35, 3), "qwen3.5-397b-a17b": (397, 17),
    "qwen3-next-80b-a3b": (80, 3), "qwen3-coder-480b-a35b": (480, 35), "llama-4-scout": (109, 17),
    "llama-4-maverick": (400, 17), "minimax-m2": (230, 10), "gemma-4-26b-a4b": (26, 4),
    "nemotron-3-nano-30b-a3b": (31.6, 3.2), "granite-4.0-h-small": (32, 9), "mistral-small-4": (119, 6.5),
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


# The ids that files of runs for `gpufare estimate` may use.
RUN_GPUS = """
    t4 a10g rtx-3090 rtx-a5000 rtx-a6000 rtx-4090 rtx-4080 rtx-6000-ada a100-sxm-40gb a100-sxm-80gb
    h100-sxm-80gb h100-sxm-96gb h200-sxm-141gb b200-sxm-180gb gb200 gb300
"""
RUN_MODELS = """
    baichuan2-13b baichuan2-7b bloomz-7b1 chatglm3-6b codellama-34b deepseek-coder-1.3b falcon-40b
    falcon-7b fms-34b gemma-2-2b gemma-2-9b gemma-2b gemma-7b llama-2-13b llama-2-70b llama-2-7b
    llama-3-70b llama-3-8b llama-3.1-405b llama-3.2-1b llama-3.2-3b llama-33b llama-65b mistral-7b
    mistral-7b-v0.3 mixtral-8x7b mpt-125m mpt-13b mpt-1b mpt-30b mpt-350m mpt-3b mpt-70b mpt-760m mpt-7b
    mt0-xxl-13b phi-1.5 phi-2 phi-3-mini powerlm-3b qwen-1.8b qwen-14b qwen-72b qwen-7b qwen2.5-0.5b
    qwen2.5-1.5b qwen2.5-32b qwen2.5-3b qwen2.5-7b santacoder smollm2-1.7b smollm2-135m smollm2-360m
    stablelm-alpha-3b t0-3b tinyllama-1.1b yi-34b yi-6b zephyr-7b
"""


def test_ids_of_runs_are_known_and_measured_runs_use_no_others(model: duckdb.DuckDBPyConnection) -> None:
    cards = {row[0] for row in model.execute("SELECT gpu_id FROM main.gpus WHERE has_full_specs").fetchall()}
    assert set(RUN_MODELS.split()) - MODELS.keys() == set(RUN_GPUS.split()) - cards == set()
    runs = model.execute("SELECT run_id, model, gpu FROM main.measured_runs").fetchall()
    assert [run for run in runs if run[1] not in MODELS or run[2] not in cards] == []
    assert len({run_id for run_id, *_ in runs}) == len(runs)
