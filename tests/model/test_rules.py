"""The rules of the model's small macros at their limits, on both sides, and what settings are refused."""

import json
import math
from typing import Any

import duckdb
import pytest

from tests.model.conftest import answers, ask, cases

CASES = cases("rules.yaml")


def test_each_rule_at_its_limits(model: duckdb.DuckDBPyConnection) -> None:
    expressions = ", ".join(expression for expression, _ in CASES["rules"])
    (found,) = model.execute(f"SELECT {expressions}").fetchall()
    wrong = [
        f"{expression} is {value!r}, not {expected!r}"
        for (expression, expected), value in zip(CASES["rules"], found, strict=True)
        if not (value == expected or (is_number(expected) and math.isclose(value, expected, abs_tol=1e-9)))
    ]
    assert wrong == []


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_settings_that_mean_nothing_are_refused(model: duckdb.DuckDBPyConnection) -> None:
    for settings, message in CASES["refused"]:
        with pytest.raises(duckdb.Error) as caught:
            answers(model, "settings_of", [{"model": "llama-3-8b", "gpu": "h100-sxm-80gb", **settings}])
        assert message in str(caught.value)


def test_each_default_is_stated_if_it_applies(model: duckdb.DuckDBPyConnection, newest_software: str) -> None:
    """A column that is no setting is named, in any case, unless it is known to be none."""
    shared = {"model": "llama-3-8b", "gpu": "h100-sxm-80gb", "lora_r": 1, "note": ""}
    runs = [shared | case["given"] for case in CASES["assumed"]]
    expected = [
        ({} if "software_date" in case["given"] else {"software_date": newest_software})
        | case["assumed"] | {"ignored_columns": ["lora_r"]}
        for case in CASES["assumed"]
    ]  # fmt: skip
    for macro in ("memory_of", "speed_of"):
        found = [json.loads(answer["assumptions"]) for answer in answers(model, macro, runs)]
        assert found == expected


def test_columns_are_known_in_any_case_and_calibrations_have_no_default(
    model: duckdb.DuckDBPyConnection,
) -> None:
    run = {"MODEL": "llama-3-8b", "gpu": "h100-sxm-80gb", "Note": "x", "recipe": "", "carried": True}
    (found,) = ask(model, "SELECT calibration, assumptions FROM memory_of('runs')", [run])
    assert found["calibration"] == "all"
    assert "ignored_columns" not in found["assumptions"]
    assert ask(model, "FROM settings_of('runs')", [run | {"calibration": "unknown"}]) == []


def test_a_family_held_out_proves_no_recipe(scratch: duckdb.DuckDBPyConnection) -> None:
    """Memory counts as traced where three measured runs agree with the traces of its recipe."""
    scratch.execute(
        "UPDATE main.recipe_settings SET agreeing_runs = CASE recipe WHEN 'hf-lora' THEN 3 ELSE 2 END,"
        " proving_family = CASE recipe WHEN 'hf-lora' THEN 'ibm' END"
    )
    shared = {"model": "llama-3.1-8b", "gpu": "rtx-a6000", "seq_len": 65536}
    runs = [shared | {"calibration": name, "checkpointing": kind}
            for name in ("all", "without ibm", "without fitcheck") for kind in ("full", "none")]  # fmt: skip
    found = [answer["is_proven"] for answer in answers(scratch, "memory_terms_of", runs)]
    assert found == [True, False, False, False, True, False]
    memory = [answer["evidence"] for answer in answers(scratch, "memory_of", runs[:2])]
    speed = [answer["evidence"] for answer in answers(scratch, "speed_of", runs[:2])]
    assert (memory[0], "traced" in (memory[1], *speed)) == ("traced", False)


def test_a_cte_named_like_our_tables_is_not_captured(model: duckdb.DuckDBPyConnection) -> None:
    tables = model.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()
    assert {"gpus", "models", "model_constants", "model_bands", "measured_runs"} <= {
        name for (name,) in tables
    }
    traps = ", ".join(f"{name} AS (SELECT 'trap' AS trap)" for (name,) in tables)
    mine = (
        "mine AS (SELECT 'llama-3.1-8b' AS model, 'lora' AS method, 'rtx-4090' AS gpu, [gpu] AS planned_gpus)"
    )
    for macro in ("memory_of", "speed_of", "plans_for"):
        plain, trapped = (
            ask(model, f"WITH {start} FROM {macro}('mine') ORDER BY ALL")
            for start in (mine, f"{traps}, {mine}")
        )
        assert plain == trapped
