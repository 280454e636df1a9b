"""Each check of sql/checks finds what it is for: nothing in sound tables, the bad rows in others."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pytest
import yaml

from pipeline.home import paths
from pipeline.warehouse.checks import CheckFailedError, run_checks
from tests.marts.database import CASES, stored

CHECKS = {path.stem: path for path in sorted((paths.SQL_DIR / "checks").glob("*.sql"))}

# For each check a statement that violates it.
BREAKAGES = {
    "a_source_answered_today": "UPDATE main.source_health SET "
    "last_attempt_day = getvariable('as_of_day')::DATE, "
    "last_accepted_day = getvariable('as_of_day')::DATE - 1",
    "cost_parameters_are_complete": "DELETE FROM main.cost_parameters WHERE name = 'image_gb'; "
    "INSERT INTO main.cost_parameters VALUES ('image_gb', 1, 'GB', 'source:a', 'a test', NULL)",
    "cost_parameters_name_known_sources": "UPDATE main.cost_parameters SET applies_to = 'source:nobody'",
    "every_workload_has_an_answer": "DELETE FROM main.cheapest_gpu_per_workload",
    "labels_are_understood": "UPDATE main.source_health SET label_coverage = 0.5",
    "machine_sizes_name_known_sources_and_gpus": "INSERT INTO main.machine_sizes BY NAME "
    "SELECT 'a' AS source, 'h100-nobody' AS gpu_id, [1] AS gpu_counts, 'inferred' AS evidence, "
    "DATE '2026-08-22' AS read_on",
    "machines_hold_their_gpus": "UPDATE main.offers_latest SET gpu_count = 12",
    "matched_offers_name_a_known_gpu": "UPDATE main.offers SET gpu_id = 'h100-nobody'",
    "offers_have_a_source": "UPDATE main.offers SET source = 'nobody'",
    "paid_machines_are_whole_offers": "UPDATE main.rentals SET usd_per_hour = usd_per_hour / 8",
    "plans_are_plausible": "INSERT INTO main.plans SELECT * REPLACE (0.9 AS fit_probability) FROM main.plans",
    "plans_are_unique": "INSERT INTO main.plans FROM main.plans LIMIT 1",
    "plans_that_do_not_fit_say_why": (
        "UPDATE main.plans SET verdict = 'does_not_fit', infeasible_reason = NULL"
    ),
    "plans_that_fit_are_whole": "UPDATE main.plans SET tokens_per_second = NULL",
    "price_per_gpu_is_the_whole_price_shared": "UPDATE main.offers SET usd_per_gpu_hour = usd_per_hour / 8",
    "prices_do_not_jump": "UPDATE main.price_changes SET change_share = 9",
    "ranked_prices_are_in_force": "UPDATE main.rentals SET price_day = price_day - 30",
    "ranks_count_up": "UPDATE main.cheapest_gpu_per_workload SET rank = rank + 1",
    "regions_are_understood": "INSERT INTO main.unmatched_regions BY NAME SELECT 'a' AS source, "
    "'moonbase' AS region, false AS reviewed, 1 AS offers, 'https://a' AS example_url, "
    "DATE '2026-08-22' AS first_day, DATE '2026-08-22' AS last_day",
    "sequences_suit_the_model": "UPDATE main.models SET max_context = 1024",
    "sizes_are_known": "UPDATE main.offers_latest SET size_evidence = 'assumed'",
    "sources_are_not_stale": "UPDATE main.source_health SET last_accepted_day = DATE '2026-08-14'",
    "sources_list_what_they_did": "INSERT INTO main.capture_outcomes BY NAME "
    "SELECT 'a' AS source, getvariable('as_of_day')::DATE AS day, 'captured' AS status, true AS accepted, "
    "0 AS requests, 0 AS failed_requests, 0 AS bytes, 0 AS duration_seconds, 0 AS retries, 0 AS rows, "
    "0 AS rejects, 0 AS matched, 0 AS ambiguous, 0 AS unknown, true AS stands, 'kind spot' AS lost",
    "sources_were_asked": "UPDATE main.source_health SET "
    "last_attempt_day = getvariable('as_of_day')::DATE - 1, "
    "attempt_due = getvariable('as_of_time')::TIMESTAMPTZ",
    "totals_are_the_sum_of_their_parts": "UPDATE main.cheapest_gpu_per_workload SET egress_usd = 99",
    "workloads_can_be_planned": "UPDATE main.workloads SET model = 'nobody'",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database without errors, with a price change on the published day."""
    queries = [path.read_text(encoding="utf-8") for path in CHECKS.values()]
    with stored(CASES / "prices_over_days", tmp_path_factory.mktemp("sound"), queries) as connection:
        connection.execute("UPDATE main.plans SET result_gib = 1, infeasible_reason = NULL")
        connection.execute("UPDATE main.unmatched_regions SET reviewed = TRUE")
        yield connection


@contextmanager
def broken(sound: duckdb.DuckDBPyConnection, *checks: str) -> Iterator[None]:
    """Violate some checks for a while."""
    sound.begin()
    for check in checks:
        sound.execute(BREAKAGES[check])
    try:
        yield
    finally:
        sound.rollback()


def test_each_check_finds_nothing_until_something_is_wrong(sound: duckdb.DuckDBPyConnection) -> None:
    """Checks of the model and of claims are tested with these."""
    others = {name for name in CHECKS if name.startswith(("model_", "claim"))}
    assert BREAKAGES.keys() == CHECKS.keys() - others
    for check in BREAKAGES:
        query = CHECKS[check].read_text(encoding="utf-8")
        assert re.match(r"-- (fail|error|warn): [a-z]", query), check
        assert sound.execute(query).fetchall() == [], check
        with broken(sound, check):
            assert sound.execute(query).fetchall() != [], check


def test_plans_are_implausible_beyond_their_limits(sound: duckdb.DuckDBPyConnection) -> None:
    given = yaml.safe_load((CASES.parent / "implausible_plans.yaml").read_text(encoding="utf-8"))
    for settings, kind in given["plans"]:
        with broken(sound):
            sound.execute(f"{given['card']}; {given['plan']}; UPDATE main.plans SET {settings}")
            found = sound.execute(CHECKS["plans_are_plausible"].read_text()).fetchall()
            assert [row[0] for row in found] == ([kind] if kind else []), settings


def test_every_check_runs_and_all_failures_are_named(sound: duckdb.DuckDBPyConnection) -> None:
    wrong = ("totals_are_the_sum_of_their_parts", "sequences_suit_the_model", "labels_are_understood")
    with broken(sound, *wrong), pytest.raises(CheckFailedError) as raised:
        run_checks(sound)
    found = {result.check.name: result for result in raised.value.results}
    assert found.keys() == CHECKS.keys()
    assert {name for name, result in found.items() if not result.passed} == set(wrong)
    for check in wrong[:2]:  # labels_are_understood only warns
        assert f"sql/checks/{check}.sql" in str(raised.value)
    assert wrong[2] not in str(raised.value)
    longest = found["sequences_suit_the_model"]
    assert longest.columns == ("workload", "seq_len", "max_context")
    assert longest.check.sentence.startswith("a workload's sequences are longer")
