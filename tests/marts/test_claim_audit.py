"""The audit of published claims: what it finds, and that each verdict depends on the number claimed."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.home import paths
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.lineage import table_lineage
from pipeline.warehouse.marts import fill

CLAIMS = paths.CATALOG_DIR / "claims.csv"

KINDS = {"price", "memory", "speed", "time", "cost", "spec", "saving", "quality", "arithmetic"}
WRONG, MEASURED, OTHER = "arithmetic wrong", "contradicted by measurement", "contradicted by another claim"
HOLDS, CONDITIONS, OPEN = "holds", "holds with conditions", "cannot be checked"

# Prices that a few providers asked two months after the guides of June and five after that of March.
OFFERS = """
    runpod    RunPod      rtx-4090       1  0.34   on_demand
    lambda    Lambda      a10            1  1.29   on_demand
    lambda    Lambda      h100-sxm-80gb  1  3.99   on_demand
    runpod    RunPod      h100-sxm-80gb  1  2.69   on_demand
    nebius    Nebius      h100-sxm-80gb  8  28.00  on_demand
    coreweave CoreWeave   a100-sxm-80gb  8  21.60  on_demand
    coreweave CoreWeave   h100-sxm-80gb  8  49.24  on_demand
    verda     Verda       l40s           1  1.00   on_demand
    verda     Verda       l40s           1  0.45   spot
"""

# What is claimed, the verdict on it, another number, and the verdict on that.
FLIPS: list[tuple[str, tuple[float, float | None], str, str]] = [
    # price
    ("001-065c", (0.90, None), CONDITIONS, OPEN),
    ("001-152a", (1.29, None), OPEN, CONDITIONS),
    ("001-191a", (21.60, None), OTHER, CONDITIONS),
    ("002-021b", (9, 10), HOLDS, MEASURED),
    # spec
    ("000-049a", (96, None), HOLDS, MEASURED),
    ("000-051b", (362, None), MEASURED, HOLDS),
    ("001-068b", (1935, None), MEASURED, HOLDS),
    # memory
    ("001-047a", (35, None), CONDITIONS, HOLDS),
    ("001-050a", (300, None), MEASURED, HOLDS),
    ("001-050c", (4, None), MEASURED, CONDITIONS),
    ("001-107a", (3, None), CONDITIONS, MEASURED),
    ("001-243a", (50, None), MEASURED, CONDITIONS),
    ("002-010b", (110, None), MEASURED, HOLDS),
    ("001-317a", (500, 900), HOLDS, MEASURED),
    # speed
    ("001-107c", (0.8, 1.3), MEASURED, HOLDS),
    ("001-090a", (2600, None), MEASURED, HOLDS),
    # time
    ("001-090b", (5787, None), WRONG, HOLDS),
    ("001-113a", (100, None), MEASURED, HOLDS),
    # cost
    ("001-114a", (400, None), HOLDS, WRONG),
    ("001-182b", (1000, None), MEASURED, HOLDS),
    # saving
    ("001-119a", (50, None), HOLDS, WRONG),
    ("001-135a", (5, None), WRONG, HOLDS),
    ("002-033a", (80, 90), HOLDS, MEASURED),
    ("002-079a", (15, 30), MEASURED, HOLDS),
    # quality
    ("001-105b", (99, 100), OTHER, OPEN),
    # arithmetic
    ("001-097a", (1 / 3, None), HOLDS, WRONG),
    ("001-261a", (90, None), HOLDS, WRONG),
    ("001-262a", (8.2e-10, None), WRONG, HOLDS),
    ("001-282a", (5e6, None), WRONG, HOLDS),
]

Audit = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with in_memory("claim_audit") as connection:
        for line in OFFERS.strip().splitlines():
            source, provider, gpu_id, count, usd, kind = line.split()
            connection.execute(
                """INSERT INTO main.offers BY NAME SELECT
                    DATE '2026-08-22' AS day, ? AS source, ? AS provider, 'a card' AS raw_label, ? AS gpu_id,
                    'matched' AS match_status, 'exact' AS match_rule, ?::DOUBLE AS gpu_count, ? AS price_kind,
                    'offered' AS size_evidence, 'dedicated' AS tier_class,
                    ?::DECIMAL(18, 8) AS usd_per_hour, usd_per_hour / gpu_count AS usd_per_gpu_hour,
                    usd_per_hour AS native_price, 'USD' AS native_currency, 'instance_hour' AS native_unit,
                    TIMESTAMPTZ '2026-08-22 06:00:00+00' AS observed_at,
                    'https://prices.example' AS source_url, '00' AS capture_sha256""",
                [source, provider, gpu_id, count, kind, usd],
            )
        connection.execute("SET VARIABLE as_of_day = DATE '2026-08-22'")
        yield connection


def audited(connection: duckdb.DuckDBPyConnection) -> Audit:
    for table in ("claim_findings", "claim_audit"):
        connection.execute(f"DELETE FROM main.{table}")
        fill(connection, table)
    found = connection.execute("FROM main.claim_audit")
    columns = [column[0] for column in found.description]
    return {row[0]: dict(zip(columns, row, strict=True)) for row in found.fetchall()}


@pytest.fixture(scope="module")
def audit(database: duckdb.DuckDBPyConnection) -> Audit:
    return audited(database)


@pytest.fixture(scope="module")
def audit_of_other_numbers(database: duckdb.DuckDBPyConnection, audit: Audit) -> Audit:
    """Every claim of FLIPS with its other number; the numbers are put back afterwards."""
    update = "UPDATE main.claims SET value = ?, value_high = ? WHERE claim_id = ?"
    database.executemany(update, [(*numbers, claim_id) for claim_id, numbers, _, _ in FLIPS])
    changed = audited(database)
    database.executemany(
        update, [(row["value"], row["value_high"], claim_id) for claim_id, row in audit.items()]
    )
    return changed


def claims() -> list[dict[str, str]]:
    with CLAIMS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_verdict_follows_the_number(audit: Audit, audit_of_other_numbers: Audit) -> None:
    expected = {claim_id: (before, after) for claim_id, _, before, after in FLIPS}
    assert {
        claim_id: (audit[claim_id]["verdict"], audit_of_other_numbers[claim_id]["verdict"])
        for claim_id in expected
    } == expected


def test_flips_cover_every_kind_and_verdict(audit: Audit) -> None:
    assert {audit[claim_id]["kind"] for claim_id, *_ in FLIPS} == KINDS
    verdicts = {WRONG, MEASURED, OTHER, HOLDS, CONDITIONS, OPEN}
    assert {before for _, _, before, _ in FLIPS} == verdicts
    assert {row["verdict"] for row in audit.values()} == verdicts


def test_speeds_and_hours_that_differ_by_a_factor_of_a_thousand(audit: Audit) -> None:
    for claim_id, hours in (("001-090b", 5787), ("001-091b", 4340), ("001-092b", 3019), ("001-093b", 1929)):
        row = audit[claim_id]
        assert row["verdict"] == WRONG
        assert row["should_be"] == pytest.approx(hours, rel=0.001)
        assert 9e6 < json.loads(row["why"])["right_for_tokens"] < 11e6
    assert audit["001-245a"]["should_be"] == pytest.approx(9921, rel=0.001)
    assert json.loads(audit["001-245a"]["why"])["right_for_tokens"] == pytest.approx(10.08e6, rel=0.001)


def test_a_70b_model_does_not_fit_where_guides_put_it(audit: Audit) -> None:
    on_a_4090 = audit["001-243a"]
    assert on_a_4090["verdict"] == MEASURED
    # 68.5 billion linear parameters of 0.516 bytes and 0.5 billion others of 2 are 34 GiB by themselves.
    assert on_a_4090["should_be"] > 34
    assert audit["001-244a"]["verdict"] == audit["001-246b"]["verdict"] == MEASURED
    for claim_id in ("002-013a", "001-050a", "001-050b", "001-221a"):
        assert audit[claim_id]["verdict"] == MEASURED
        assert audit[claim_id]["should_be"] > 128  # 69 billion parameters of 2 bytes, in GiB


def test_full_fine_tuning_needs_its_optimizer(audit: Audit) -> None:
    for claim_id in ("002-010b", "002-011b", "004-019b"):
        assert audit[claim_id]["verdict"] == MEASURED
        assert 55 < audit[claim_id]["should_be"] < 90


def test_known_contradictions_come_with_the_right_number(audit: Audit) -> None:
    for claim_id, verdict, should_be in (
        ("001-068b", MEASURED, 1935),
        ("000-051b", MEASURED, 362.05),
        ("001-135a", WRONG, 5),
        ("001-262a", WRONG, 82.16e-11),
        ("001-191a", OTHER, 21.60),
    ):
        assert (audit[claim_id]["verdict"], audit[claim_id]["should_be"]) == (
            verdict,
            pytest.approx(should_be),
        )


def test_two_prices_of_one_document_contradict_each_other(audit: Audit) -> None:
    assert audit["001-191a"]["disagrees_with"] == "001-112a;001-162a"
    assert "001-191a" in audit["001-162a"]["disagrees_with"]
    # A provider's own page supports the other one.
    assert audit["001-162a"]["verdict"] == CONDITIONS


def test_claims_of_quality_disagree_and_none_is_preferred(audit: Audit) -> None:
    for claim_id in ("001-105b", "001-107b", "001-269a", "002-054c"):
        assert audit[claim_id]["verdict"] == OTHER
    assert "001-107b" in audit["002-054c"]["disagrees_with"]


def test_arithmetic_agrees_with_a_recomputation_outside_sql(audit: Audit) -> None:
    formulas = {
        "a + b": sum,
        "a - b": lambda t: t[0] - t[1],
        "a * b": lambda t: t[0] * t[1],
        "a / b": lambda t: t[0] / t[1],
        "a * b / c": lambda t: t[0] * t[1] / t[2],
        "least": min,
        "saving of a against b": lambda t: 100 * (t[1] - t[0]) / t[1],
    }
    checked = 0
    for row in claims():
        if row["formula"] in formulas:
            expected = formulas[row["formula"]]([float(term) for term in row["terms"].split(";")])
        elif row["formula"] == "hours * usd_per_hour":
            expected = float(row["hours"]) * float(row["usd_per_hour"])
        elif row["formula"] == "tokens / tokens_per_second":
            expected = float(row["tokens"]) / float(row["tokens_per_second"]) / 3600
        else:
            continue
        checked += 1
        slack = float(row["tolerance"])
        most = float("inf") if row["or_more"] else float(row["value_high"] or row["value"])
        high = most * (1 + slack)
        right = float(row["value"]) * (1 - slack) <= expected * (1 + 1e-12) and expected <= high * (1 + 1e-12)
        assert (audit[row["claim_id"]]["verdict"] != WRONG) == right, row["claim_id"]
        if not right:
            assert audit[row["claim_id"]]["should_be"] == pytest.approx(expected)
    assert checked > 60


def test_every_formula_is_computed(audit: Audit) -> None:
    with_formula = [row["claim_id"] for row in claims() if row["formula"]]
    uncomputed = [claim_id for claim_id in with_formula if audit[claim_id]["should_be"] is None]
    assert uncomputed == []


def test_claims_have_no_verdicts_and_name_their_place(audit: Audit) -> None:
    rows = claims()
    assert len(rows) >= 120
    assert {row["document"] for row in rows} == {"000", "001", "002", "003", "004"}
    assert not {"verdict", "should_be", "why"} & rows[0].keys()
    for row in rows:
        assert all(row[column] for column in ("title", "place", "claim", "unit", "as_of")), row["claim_id"]
        assert row["claim_id"].startswith(f"{row['document']}-{int(row['line']):03d}")
    assert audit.keys() == {row["claim_id"] for row in rows}
    assert all(json.loads(row["why"])["finding"] for row in audit.values())
    assert {row["kind"] for row in rows} == KINDS


def test_claims_name_known_models_gpus_and_claims(database: duckdb.DuckDBPyConnection) -> None:
    gpus = {gpu for (gpu,) in database.execute("SELECT gpu_id FROM main.gpus").fetchall()}
    models = {model for (model,) in database.execute("SELECT model FROM main.models").fetchall()}
    rows = {row["claim_id"]: row for row in claims()}
    for row in rows.values():
        assert row["gpu_id"] in gpus | {""}, row["claim_id"]
        assert row["model"] in models | {""}, row["claim_id"]
        for other in filter(None, row["disagrees_with"].split(";")):
            assert rows[other]["unit"] == row["unit"], (row["claim_id"], other)


def test_every_claim_that_names_a_setting_is_estimated(database: duckdb.DuckDBPyConnection) -> None:
    missing = database.execute(
        """SELECT claim_id FROM main.claims
            WHERE model IS NOT NULL AND method IS NOT NULL AND kind <> 'quality'
              AND claim_id NOT IN (SELECT claim_id FROM claim_needs())"""
    ).fetchall()
    assert missing == []
    # A number that the model fails to give must not pass for "cannot be checked".
    empty = database.execute(
        """SELECT DISTINCT claim_id FROM claim_estimates()
            WHERE needed_gib IS NULL OR least_gib IS NULL OR tokens_per_second_low IS NULL"""
    ).fetchall()
    assert empty == []


def test_nothing_that_ranks_reads_claims() -> None:
    claims = {"claims", "claim_rules", "claim_findings", "claim_audit"}
    readers = {table.name for table in table_lineage() if table.reads & claims}
    assert readers == {"claim_findings", "claim_audit"}


# Figures that stand in running text, next to tables that repeat some of them.
IN_RUNNING_TEXT = {
    ("001", "22"): {0.34, 5.98},
    ("001", "26"): {2},
    ("001", "157"): {3.78, 2.69, 2.86, 1.99},
    ("001", "189"): {4.25, 7.96},
    ("001", "315"): {10e6, 100e9},
    ("004", "19"): {24},
}


def test_figures_in_running_text_are_claims_too(audit: Audit) -> None:
    claimed: dict[tuple[str, str], set[float]] = {}
    for row in claims():
        claimed.setdefault((row["document"], row["line"]), set()).add(float(row["value"]))
    assert all(numbers <= claimed.get(line, set()) for line, numbers in IN_RUNNING_TEXT.items())
    # A fifth of the 10-hour job of the two lines above, not of the 5.8 hours in the table before.
    assert (audit["001-097a"]["verdict"], audit["001-097a"]["should_be"]) == (HOLDS, pytest.approx(0.19))


# Claims made in words ("half", "twice", "thousands"), or stated as the part lost rather than the part kept.
IN_OTHER_WORDS = {
    *("001-042a", "001-085a", "001-097a", "001-108b", "001-166a", "001-166b", "001-166c", "001-166d"),
    *("001-230a", "002-015a", "002-054c", "003-009a", "004-006c", "004-019a"),
}


def test_claimed_numbers_are_on_the_lines_that_claims_name() -> None:
    """claim_lines.csv lists the numbers on each of those lines, as printed."""
    with (Path(__file__).parent / "claim_lines.csv").open(newline="", encoding="utf-8") as file:
        printed = {(row["document"], row["line"]): row["numbers"] for row in csv.DictReader(file)}
    absent = set()
    for row in claims():
        numbers = {float(text) for text in filter(None, printed[row["document"], row["line"]].split(";"))}
        value = float(row["value"])
        if row["quantity"] == "gpus_needed" and value == 1:
            continue  # "An L40S" is one.
        if not {value, value / 1e3, value / 1e6, value / 1e9} & numbers:
            absent.add(row["claim_id"])
    assert absent == IN_OTHER_WORDS
