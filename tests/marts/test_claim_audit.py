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
from pipeline.warehouse.lineage import Lineage, table_lineage
from pipeline.warehouse.marts import fill

CLAIMS = paths.CATALOG_DIR / "claims.csv"

KINDS = {"price", "memory", "speed", "time", "cost", "spec", "saving", "quality", "arithmetic"}

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

# The verdict on a claim, between what its number should be, and the verdict on another number.
VERDICTS = [*csv.DictReader(Path(__file__).with_name("claim_verdicts.csv").open(encoding="utf-8"))]
FLIPS = [row for row in VERDICTS if row["other_value"]]

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
    numbers = ((row["other_value"], row["other_value_high"] or None, row["claim_id"]) for row in FLIPS)
    database.executemany(update, [*numbers])
    changed = audited(database)
    former = ((row["value"], row["value_high"], claim_id) for claim_id, row in audit.items())
    database.executemany(update, [*former])
    return changed


def claims() -> list[dict[str, str]]:
    with CLAIMS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_verdicts_have_the_right_number_and_follow_the_claimed_one(
    audit: Audit, audit_of_other_numbers: Audit
) -> None:
    """A model of 70B is above 34 GiB in 4 bits, and above 128 in 16; full tuning needs its optimizer; hours
    in millions of GPU-hours are wrong by a thousand; prices contradict each other, and so do qualities."""
    wrong = []
    for row in VERDICTS:
        claim_id, found = row["claim_id"], audit[row["claim_id"]]
        other = audit_of_other_numbers[claim_id]["verdict"] if row["other_value"] else ""
        if (found["verdict"], other) != (row["verdict"], row["verdict_on_other"]):
            wrong.append((claim_id, found["verdict"], other))
        least, most = float(row["least"] or "-inf"), float(row["most"] or "inf")
        bounded = row["least"] or row["most"]
        if bounded and not least * (1 - 1e-6) <= found["should_be"] <= most * (1 + 1e-6):
            wrong.append((claim_id, found["should_be"]))
    assert wrong == []
    for claim_id in ("001-090b", "001-091b", "001-092b", "001-093b"):
        assert 9e6 < json.loads(audit[claim_id]["why"])["right_for_tokens"] < 11e6
    assert json.loads(audit["001-245a"]["why"])["right_for_tokens"] == pytest.approx(10.08e6, rel=0.001)


def test_verdicts_cover_every_kind(audit: Audit) -> None:
    assert {audit[row["claim_id"]]["kind"] for row in FLIPS} == KINDS
    verdicts = {row["verdict"] for row in FLIPS}
    assert verdicts == {row["verdict"] for row in audit.values()}
    assert len(verdicts) == 6


def test_claims_that_disagree_name_each_other(audit: Audit) -> None:
    assert audit["001-191a"]["disagrees_with"] == "001-112a;001-162a"
    assert "001-191a" in audit["001-162a"]["disagrees_with"]
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
    with_formula = [row for row in claims() if row["formula"]]
    assert [row["claim_id"] for row in with_formula if audit[row["claim_id"]]["should_be"] is None] == []
    for row in with_formula:
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
        assert (audit[row["claim_id"]]["verdict"] != "arithmetic wrong") == right, row["claim_id"]
        if not right:
            assert audit[row["claim_id"]]["should_be"] == pytest.approx(expected)
    assert checked > 60


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
    with duckdb.connect() as connection:
        tables = table_lineage(Lineage(connection))
    readers = {table.name for table in tables if table.reads & claims}
    assert readers == {"claim_findings", "claim_audit"}


# Figures that stand in running text, next to tables that repeat some of them.
IN_RUNNING_TEXT = {
    ("001", "22"): {0.34, 5.98}, ("001", "26"): {2}, ("001", "157"): {3.78, 2.69, 2.86, 1.99},
    ("001", "189"): {4.25, 7.96}, ("001", "315"): {10e6, 100e9}, ("004", "19"): {24},
}  # fmt: skip


def test_figures_in_running_text_are_claims_too() -> None:
    claimed: dict[tuple[str, str], set[float]] = {}
    for row in claims():
        claimed.setdefault((row["document"], row["line"]), set()).add(float(row["value"]))
    assert all(numbers <= claimed.get(line, set()) for line, numbers in IN_RUNNING_TEXT.items())


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
