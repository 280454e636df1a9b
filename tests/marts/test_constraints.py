"""Constraints are applied before offers are ranked: each is tested on a market where filtering the
answer afterwards is wrong. The market's README explains its numbers."""

import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from pipeline.contracts.training import EVIDENCES
from pipeline.questions.reasons import unranked_text, why_not_text
from pipeline.questions.words import total_parts
from tests.marts.database import CASES, from_folder

MARKET = CASES.parent / "market"
SHORT, LONG = 3.6e6, 3.6e9
"""Tokens of a job of one hour, and of one of 1,000 hours, on one card."""

Row = dict[str, Any]


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    queries = [
        "FROM cheapest_published('asked')",
        "FROM nearest_answers('asked', 'plans')",
        "FROM machine_ranks('asked', 'plans', 'ranked')",
        "FROM cost_history('asked', 'ranked')",
    ]
    with from_folder(MARKET, tmp_path_factory.mktemp("market"), queries) as connection:
        yield connection


def asked(market: duckdb.DuckDBPyConnection, query: str, **job: Any) -> list[Row]:
    columns = ", ".join(f"${name} AS {name}" for name in job)
    found = market.execute(f"WITH asked AS (SELECT 'm' AS model, {columns}) {query}", job)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def cheapest(market: duckdb.DuckDBPyConnection, **job: Any) -> list[Row]:
    return asked(market, "FROM cheapest_published('asked')", **job)


def nearest(market: duckdb.DuckDBPyConnection, **job: Any) -> dict[str, Row]:
    query = """, done AS (FROM completed_jobs('asked')), planned AS (FROM published_plans('done'))
        FROM nearest_answers('done', 'planned')"""
    return {" + ".join(row["constraints"]): row for row in asked(market, query, **job)}


def labels(rows: list[Row]) -> list[str]:
    return [row["raw_label"] for row in rows]


@pytest.mark.parametrize(
    ("job", "constraint", "expected"),
    [
        ({"tokens": SHORT, "gpu": "card", "gpus": 1}, {"provider": "beta"}, ["beta"]),
        ({"tokens": SHORT, "gpu": "card", "gpus": 1}, {"exclude_provider": ["Gamma"]}, ["alpha"]),
        ({"tokens": SHORT, "gpu": "card", "gpus": 1}, {"tier": "community"}, ["delta"]),
        ({"tokens": SHORT, "gpu": "card", "gpus": 1}, {"country": "no"}, ["beta-north"]),
        ({"tokens": SHORT, "gpu": "card", "gpus": 1}, {"country": "eu"}, ["beta"]),
        # The cheapest offers are of unknown place, and might be there.
        ({"tokens": SHORT, "gpu": "card", "gpus": 1}, {"exclude_country": "us"}, ["beta"]),
        ({"tokens": SHORT, "gpu": "card", "gpus": 1}, {"exclude_country": ["us", "fi"]}, ["beta-north"]),
        ({"tokens": SHORT, "gpu": "card", "gpus": 1}, {"continent": "europe"}, ["beta"]),
        # The cheapest offer fails now and then and takes 1.21 hours, the next one 1.17.
        ({"tokens": SHORT, "gpu": "card", "gpus": 1}, {"max_hours": 1.2}, ["alpha"]),
        ({"tokens": LONG}, {"gpu": "card"}, ["pair"]),
        ({"tokens": LONG}, {"gpu": "acme"}, ["pair"]),
        ({"tokens": LONG}, {"exclude_gpu": "two"}, ["pair"]),
        ({"tokens": LONG, "exclude_gpu": "quick"}, {"gpus": 1}, ["gamma"]),
        ({"tokens": LONG}, {"min_gpus": 2}, ["pair"]),
        ({"tokens": LONG, "exclude_gpu": "quick", "gpus": 16}, {"max_nodes": 1}, ["pair"]),
        ({"tokens": LONG}, {"source": "mall"}, ["pair"]),
        ({"tokens": LONG}, {"exclude_source": "fast"}, ["pair"]),
        ({"tokens": LONG, "kind": "any"}, {"kind": "spot"}, ["spot"]),
        ({"tokens": LONG, "kind": "reserved"}, {"max_term_days": 30}, ["month"]),
        ({"tokens": LONG}, {"max_usd": 1500}, ["pair"]),
        ({"tokens": LONG}, {"max_age_days": 1}, ["pair"]),
        ({"tokens": LONG}, {"evidence": "interpolated"}, ["pair"]),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else None,
)
def test_constraints_come_before_the_ranking(
    market: duckdb.DuckDBPyConnection, job: Row, constraint: Row, expected: list[str]
) -> None:
    answered = cheapest(market, **(job | constraint))
    assert labels(answered) == expected
    assert [row["rank"] for row in answered] == [*range(1, len(expected) + 1)]
    # Whoever filters afterwards has another answer, or none.
    assert expected[0] not in labels(cheapest(market, **job))


def test_a_probability_asked_for_comes_before_the_deadline(market: duckdb.DuckDBPyConnection) -> None:
    """Published plans are for the usual probability; ranked_jobs takes any."""
    query = """, usual AS (FROM completed_jobs('asked')), planned AS (FROM published_plans('usual')),
        bold AS (SELECT * REPLACE (0.97 AS min_fit_probability) FROM usual)
        SELECT raw_label FROM ranked_jobs('{}', 'planned') ORDER BY rank"""
    assert labels(asked(market, query.format("usual"), tokens=LONG)) == ["quick"]
    assert labels(asked(market, query.format("bold"), tokens=LONG)) == ["pair"]


def test_offers_of_unknown_place_are_counted(market: duckdb.DuckDBPyConnection) -> None:
    for place in ({"country": "eu"}, {"exclude_country": "us"}):
        (row,) = cheapest(market, tokens=SHORT, gpus=1, **place)
        assert json.loads(row["assumptions"])["offers_without_place"] == 1
    assert "offers_without_place" not in cheapest(market, tokens=SHORT)[0]["assumptions"]


def test_a_cost_history_has_prices_of_wanted_places_only(market: duckdb.DuckDBPyConnection) -> None:
    """The day before, only a machine in the United States had a price."""
    query = """, done AS (FROM completed_jobs('asked')), ranked AS (FROM cheapest_published('asked'))
        SELECT day::VARCHAR AS day FROM cost_history('done', 'ranked')"""
    market.begin()
    market.execute(
        "INSERT INTO main.offers SELECT * REPLACE (day - 1 AS day, usd_per_gpu_hour / 2 AS usd_per_gpu_hour)"
        " FROM main.offers WHERE raw_label = 'alpha'"
    )
    days = {
        place: [row["day"] for row in asked(market, query, tokens=SHORT, gpu="card", gpus=1, **{place: "us"})]
        for place in ("country", "exclude_country")
    }
    market.rollback()
    assert days == {"country": ["2026-08-21", "2026-08-22"], "exclude_country": ["2026-08-22"]}


def test_a_quote_and_an_own_machine_are_ranked_with_the_market(market: duckdb.DuckDBPyConnection) -> None:
    rows = cheapest(market, tokens=SHORT, quote="2 x card at 0.10; 1 x card at 0.95", own="2 x card at 0.5")
    by_source = {(row["source"], row["gpu_count"], row["raw_label"]): row for row in rows}
    quoted = by_source["quote", 2, "2 x card at 0.10"]
    # Half an hour and ten minutes for two cards at 10 cents, each started hour paid.
    assert float(quoted["total_usd"]) == pytest.approx(0.20)
    assert quoted["hours"] == pytest.approx(40 / 60)
    assert (quoted["price_kind"], quoted["provider"], quoted["gpus_billed"]) == ("quote", "quote", 2)
    assert float(by_source["quote", 1, "1 x card at 0.95"]["total_usd"]) == pytest.approx(2 * 0.95)
    # One's own need not be set up, and uses electricity only while it trains.
    assert float(by_source["own", 1, "2 x card at 0.5"]["total_usd"]) == pytest.approx(0.5)
    assert float(by_source["own", 2, "2 x card at 0.5"]["total_usd"]) == pytest.approx(0.5)
    assert by_source["own", 2, "2 x card at 0.5"]["hours"] == pytest.approx(0.5)
    assert rows[0] == quoted
    free = cheapest(market, tokens=SHORT, own="1 x card", provider="beta", country="eu", max_age_days=0)
    assert [(row["source"], float(row["total_usd"])) for row in free] == [
        ("own", 0),
        ("mall", pytest.approx(7 / 3, abs=1e-4)),
    ]
    # The constraints on GPUs are theirs, too.
    assert {row["source"] for row in cheapest(market, tokens=SHORT, own="2 x card", gpus=1)} == {
        "own",
        "mall",
        "fast",
    }
    assert not cheapest(market, tokens=SHORT, own="2 x card", gpu="card", provider="fast", min_gpus=4)


@pytest.mark.parametrize(
    ("machine", "job", "reason", "detail"),
    [
        ({"quote": "2 x card at 9"}, {}, "ranked", ""),
        ({"quote": "2xcard at 9"}, {}, "ranked", ""),
        ({"own": "2 x card at 9"}, {"gpu": "quick"}, "gpu", "the job leaves this GPU out"),
        (
            {"quote": "4 x card at 1"},
            {"gpus": 2},
            "too_many_gpus",
            "it has 4 GPUs, but the job allows at most 2",
        ),
        ({"own": "2 x card"}, {"gpus": 1, "min_gpus": 1}, "ranked", ""),
        (
            {"quote": "2 x card at 1"},
            {"min_gpus": 4},
            "min_gpus",
            "it uses 2 GPUs, but the job asks for at least 4",
        ),
        (
            {"own": "16 x card"},
            {"max_nodes": 1, "min_gpus": 16},
            "max_nodes",
            "it is 2 machines, but the job allows at most 1",
        ),
        (
            {"own": "1 x card"},
            {"evidence": "measured"},
            "evidence",
            "its speed is interpolated, but the job asks for at least measured",
        ),
        ({"own": "1 x card"}, {"max_hours": 0.5}, "max_hours", "it takes 1.0 hours, but the deadline is 0.5"),
        ({"quote": "1 x card at 9"}, {"max_usd": 2}, "max_usd", "it costs 18.00 USD, but the budget is 2.00"),
        ({"quote": "1 x card at 9"}, {"objective": "pareto"}, "beaten", "another answer beats it"),
        ({"quote": "1 x card at 9; 1 x card at 1"}, {}, "another_costs_less", "another such machine costs"),
        ({"own": "3 x huge"}, {}, "not_planned", "no plan for this number"),
        (
            {"quote": "1 x card at 9"},
            {"max_usd": 2, "max_hours": 0.5},
            "max_hours + max_usd",
            "it takes 1.2 hours, but the deadline is 0.5 hours; it costs 18.00 USD, but the budget is 2.00",
        ),
    ],
    ids=str,
)
def test_a_machine_that_is_asked_for_has_its_rank_or_the_reason_why_not(
    market: duckdb.DuckDBPyConnection, machine: Row, job: Row, reason: str, detail: str
) -> None:
    query = """, done AS (FROM completed_jobs('asked')),
        planned AS (SELECT *, NULL::VARCHAR AS infeasible_reason FROM published_plans('done')),
        ranked AS (FROM cheapest_published('asked'))
        FROM machine_ranks('done', 'planned', 'ranked') JOIN done USING (job)
        ORDER BY rank NULLS LAST, source, machine"""
    rows = asked(market, query, **({"tokens": SHORT} | machine | job))
    (source, text), *_ = machine.items()
    assert {row["source"] for row in rows} == {source}
    assert [row["machine"] for row in rows][-1] == text.split(";")[0]
    row = rows[-1]
    missed = " + ".join(row["missed"] or [row["reason"]])
    assert (missed, row["rank"] is not None) == (reason, reason == "ranked")
    assert row["rank"] or detail in unranked_text(row)
    ranked = cheapest(market, **({"tokens": SHORT} | machine | job))
    assert row["ranks"] == len(ranked)
    if row["rank"] is not None:
        assert ranked[row["rank"] - 1]["raw_label"] == text


def test_pareto_keeps_answers_that_none_beats_in_both(market: duckdb.DuckDBPyConnection) -> None:
    every = cheapest(market, tokens=SHORT)
    front = cheapest(market, tokens=SHORT, objective="pareto")
    # gamma is the cheapest, and the cheapest of its group; alpha is a little dearer and sooner done.
    assert labels(front) == ["gamma", "alpha", "pair", "quick"]
    assert front[0]["hours"] == pytest.approx(1.21, abs=0.005)
    assert "alpha" not in labels(every)
    assert [row["rank"] for row in front] == [1, 2, 3, 4]
    costs, hours = [row["total_usd"] for row in front], [row["hours"] for row in front]
    assert costs == sorted(set(costs))
    assert hours == sorted(set(hours), reverse=True)


@pytest.mark.parametrize(
    ("job", "constraint", "value", "label_or_kind"),
    [
        ({"tokens": SHORT, "gpu": "card", "max_hours": 0.5}, "max_hours", "0.67", "on_demand"),
        ({"tokens": SHORT, "max_usd": 0.1}, "max_usd", "1.09", "on_demand"),
        ({"tokens": LONG, "max_hours": 400, "exclude_gpu": "quick", "gpus": 8}, "gpus", "16", "on_demand"),
        ({"tokens": SHORT, "gpus": 64, "min_gpus": 64}, "min_gpus", "16", "on_demand"),
        ({"tokens": SHORT, "gpu": "quick", "max_age_days": 0}, "max_age_days", "2", "on_demand"),
        ({"tokens": SHORT, "gpu": "quick", "country": "fi"}, "country", "US", "on_demand"),
        ({"tokens": SHORT, "gpu": "quick", "evidence": "measured"}, "evidence", "extrapolated", "on_demand"),
        ({"tokens": SHORT, "provider": "alpha", "tier": "community"}, "provider", "Delta", "on_demand"),
        ({"tokens": LONG, "kind": "reserved", "max_term_days": 7}, "max_term_days", "30", "reserved"),
        ({"tokens": SHORT, "gpu": "quick", "kind": "spot"}, "kind", "on_demand", "on_demand"),
        (
            {"tokens": LONG, "max_nodes": 1, "exclude_gpu": "quick", "gpus": 16, "min_gpus": 16},
            "max_nodes",
            "2",
            "on_demand",
        ),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else None,
)
def test_without_answers_the_nearest_value_of_each_constraint_is_computed(
    market: duckdb.DuckDBPyConnection, job: Row, constraint: str, value: str, label_or_kind: str
) -> None:
    assert not cheapest(market, **job)
    row = nearest(market, **job)[constraint]
    assert row["nearest"] == [value]
    assert row["price_kind"] == label_or_kind
    # With that value there is an answer, and it is the one that was promised.
    name = {
        "max_hours": float,
        "max_usd": float,
        "gpus": int,
        "min_gpus": int,
        "max_age_days": int,
        "max_term_days": int,
        "max_nodes": int,
    }.get(constraint, str)
    answered = cheapest(market, **(job | {constraint: name(value)}))
    assert row["total_usd"] in [each["total_usd"] for each in answered]


def test_an_unreachable_probability_is_named_with_the_nearest(market: duckdb.DuckDBPyConnection) -> None:
    query = """, usual AS (FROM completed_jobs('asked')), planned AS (FROM published_plans('usual')),
        sure AS (
            SELECT * REPLACE (0.999 AS min_fit_probability, map {'min_fit_probability': '0.999'} AS asked)
            FROM usual
        )
        FROM nearest_answers('sure', 'planned')"""
    (row,) = asked(market, query, tokens=SHORT)
    assert (row["constraints"], row["asked"], row["nearest"]) == (
        ["min_fit_probability"],
        ["0.999"],
        ["0.99"],
    )


def test_an_excluded_country_that_leaves_nothing_is_named(market: duckdb.DuckDBPyConnection) -> None:
    job: Row = {"tokens": SHORT, "gpu": "quick", "exclude_country": "us"}
    assert not cheapest(market, **job)
    row = nearest(market, **job)["exclude_country"]
    assert (row["asked"], row["nearest"]) == (["us"], ["US"])


def test_the_default_deadline_follows_the_tokens_of_all_epochs(market: duckdb.DuckDBPyConnection) -> None:
    for epochs, hours in ((1, 168), (10, 168), (11, 720)):
        (row,) = asked(
            market,
            "SELECT max_hours, deadline_is_strict FROM completed_jobs('asked')",
            tokens=1e9,
            epochs=epochs,
        )
        assert row == {"max_hours": hours, "deadline_is_strict": False}


def test_if_no_single_constraint_helps_the_smallest_sets_are_named(
    market: duckdb.DuckDBPyConnection,
) -> None:
    found = nearest(market, tokens=SHORT, gpu="quick", country="fi", provider="mall", max_usd=0.5)
    assert found
    assert {len(name.split(" + ")) for name in found} == {2}
    assert found["gpu + max_usd"]["nearest"] == ["card", "2.34"]
    assert nearest(market, tokens=SHORT) == {}


def test_a_job_off_the_grid_is_refused_where_published_plans_are_asked(
    market: duckdb.DuckDBPyConnection,
) -> None:
    for job in ({"seq_len": 1024}, {"lora_rank": 24}, {"stack": "hf"}, {"min_fit_probability": 0.5}):
        with pytest.raises(duckdb.Error, match=r"no plans are published for m lora.*cheapest_for plans any"):
            cheapest(market, tokens=SHORT, **job)


def test_offers_that_differ_in_a_constraint_are_separate_rentals(market: duckdb.DuckDBPyConnection) -> None:
    """Offers that differ only in something a job can constrain are each a rental."""
    rows = market.execute(
        "SELECT raw_label FROM rentals WHERE gpu_count = 1 AND price_kind = 'on_demand' AND gpu_id = 'card'"
    ).fetchall()
    assert {"gamma", "alpha", "beta", "beta-north", "delta"} <= {label for (label,) in rows}


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"country": ""}, "Job job 1: country: names nothing; leave the column out"),
        ({"gpu": []}, "gpu: names nothing"),
        ({"kind": " , "}, "kind: names nothing"),
        ({"quote": ""}, "quote: names nothing"),
        ({"country": ["eu", None]}, "country: one of its names is null"),
        ({"gpus": "eight"}, "gpus must be a whole number; eight is not a number"),
        ({"gpus": 10**12}, r"gpus must be at most 1e\+06, not 1e\+12"),
        ({"gpus": 2.7}, "gpus must be a whole number, not 2.7"),
        ({"seq_len": 1.5}, "seq_len must be a whole number, not 1.5"),
        ({"tokens": "100M"}, "tokens must be a number; 100M is not a number"),
        ({"metod": "qlora"}, r"Job job 1: no column 'metod'; did you mean method\?"),
        ({"countries": "us"}, "no column 'countries'; did you mean country"),
        ({"jobs": "mine"}, "no column 'jobs'; did you mean job"),
        ({"MaxUSD": 0.5}, "no column 'MaxUSD'; did you mean max_usd"),
        ({"modle": "x"}, "no column 'modle'; did you mean model"),
        ({"lora_rnk": 8, "note": 1}, "no column 'lora_rnk'; did you mean lora_rank"),
        ({"country": "atlantis"}, "no country atlantis; main.job_names lists them"),
        ({"epochs": 1e12}, r"tokens of all epochs must be at most 1e\+17"),
        ({"epochs": float("inf")}, "epochs must be finite"),
        ({"max_usd": float("nan")}, "max_usd must be a number; nan is not"),
        ({"assumed_sizes": "maybe"}, "assumed_sizes must be true or false, not maybe"),
        (
            {"provider": "central bank"},
            "provider central bank is none of alpha, beta, delta, fast, gamma, mall",
        ),
    ],
    ids=str,
)
def test_invalid_values_are_refused_by_job_and_column(
    market: duckdb.DuckDBPyConnection, job: Row, message: str
) -> None:
    with pytest.raises(duckdb.Error, match=message):
        cheapest(market, **({"tokens": SHORT} | job))


def test_misspelt_column_is_refused_for_any_selection(market: duckdb.DuckDBPyConnection) -> None:
    job = "WITH asked AS (SELECT 'm' AS model, 1e6 AS tokens, 'qlora' AS metod)"
    for read in ("count(*)", "1 AS one", "seq_len"):
        with pytest.raises(duckdb.Error, match="did you mean method"):
            market.execute(f"{job} SELECT {read} FROM completed_jobs('asked')")


def test_columns_that_are_not_settings_are_ignored_and_listed(market: duckdb.DuckDBPyConnection) -> None:
    names = (
        "name",
        "label",
        "note",
        "id",
        "team",
        "owner",
        "model_name",
        "workload",
        "title",
        "job_id",
        "total_usd",
    )
    columns = ", ".join(f"1 AS {name}" for name in names)
    (said,) = market.execute(
        f"WITH asked AS (SELECT 'm' AS model, 1e6 AS tokens, {columns}) "
        "SELECT job_assumptions FROM completed_jobs('asked')"
    ).fetchone()
    assert json.loads(said)["ignored_columns"] == list(names)


def test_a_refusal_does_not_depend_on_the_columns_that_are_read(market: duckdb.DuckDBPyConnection) -> None:
    for columns in ("model", "count(*)", "max_gpus, constraints"):
        with pytest.raises(duckdb.Error, match="Job job 1: tokens must be above 0, not -1"):
            asked(market, f"SELECT {columns} FROM completed_jobs('asked')", tokens=-1)


def test_what_a_rental_misses_is_named(market: duckdb.DuckDBPyConnection) -> None:
    """The filter of rankings and the names for an empty one have the same constraints."""
    read = market.execute(
        """SELECT list_sort(list_distinct(
            regexp_extract_all(replace(macro_definition, '"', ''), 'j\\.(?:constraints\\.)?\\w+')
        ))
        FROM duckdb_functions() WHERE function_name IN ('is_rental_wanted', 'rental_misses')"""
    ).fetchall()
    assert len(read) == 2
    assert read[0] == read[1]
    assert {"j.price_kinds", "j.constraints.country", "j.constraints.term_days"} < set(read[0][0])
    given = [
        ("job", "country", "exclude_country", "exclude_provider", "tier", "kind"),
        ("any", None, None, None, None, None),
        ("places", "us", None, None, None, "any"),
        ("others", None, "us", "alpha", None, "any"),
        ("kinds", None, None, None, "dedicated", "spot"),
    ]
    rows = ", ".join(f"({', '.join('?' * len(row))})" for row in given[1:])
    counts = market.execute(
        f"""WITH given ({", ".join(given[0])}) AS (VALUES {rows}),
        asked AS (SELECT 'm' AS model, 1e6 AS tokens, * FROM given)
        SELECT is_rental_wanted(r, j), list_any_value(rental_misses(r, j)) IS NULL, count(*)
        FROM completed_jobs('asked') AS j CROSS JOIN rentals AS r GROUP BY ALL ORDER BY ALL""",
        [value for row in given[1:] for value in row],
    ).fetchall()
    assert [row[:2] for row in counts] == [(False, False), (True, True)]


def test_every_column_that_a_setting_constrains_is_compared(market: duckdb.DuckDBPyConnection) -> None:
    (constraints,) = market.execute(
        "WITH asked AS (SELECT 'm' AS model, 1e6 AS tokens) SELECT constraints FROM completed_jobs('asked')"
    ).fetchone()
    constrained = "SELECT DISTINCT constrains FROM job_settings WHERE constrains IS NOT NULL"
    assert set(constraints) == {column for (column,) in market.execute(constrained).fetchall()}


def test_evidence_has_one_order_in_sql_and_in_options(market: duckdb.DuckDBPyConnection) -> None:
    (kinds,) = market.execute("SELECT evidences_from('extrapolated')").fetchall()[0]
    assert tuple(kinds) == EVIDENCES


def test_usual_names_of_countries_and_variants_of_models_are_understood(
    market: duckdb.DuckDBPyConnection,
) -> None:
    (row,) = market.execute(
        """WITH asked AS (SELECT 'acme/M-Instruct' AS model, 1e6 AS tokens, 'USA, suomi' AS country)
           SELECT model, constraints, job_assumptions FROM completed_jobs('asked')"""
    ).fetchall()
    assert row[0] == "m"
    assert row[1]["country"]["wanted"] == ["US", "FI"]
    assert json.loads(row[2])["model"] == "m"


def test_the_nearest_place_is_one_that_can_be_asked_for(market: duckdb.DuckDBPyConnection) -> None:
    """The cheapest card is at a place that is not known."""
    row = nearest(market, tokens=SHORT, gpu="card", gpus=1, provider="gamma, beta", country="us")["country"]
    assert row["nearest"] == ["FI"]


def test_asked_values_are_named_as_written(market: duckdb.DuckDBPyConnection) -> None:
    row = nearest(market, tokens=SHORT, gpu="quick", country="eu")["country"]
    assert row["asked"] == ["eu"]
    row = nearest(market, tokens=SHORT, gpu=["Two", "huge"], provider="mall, alpha")["gpu"]
    assert row["asked"] == ["Two, huge"]
    assert nearest(market, tokens=SHORT, gpu="quick", max_age_days=0)["max_age_days"]["asked"] == ["0"]


def test_why_not_names_a_price_that_is_too_old(market: duckdb.DuckDBPyConnection) -> None:
    query = """, done AS (FROM completed_jobs('asked')),
        planned AS (SELECT *, NULL::VARCHAR AS infeasible_reason FROM published_plans('done')),
        ranked AS (FROM cheapest_published('asked'))
        FROM why_not_for('done', 'planned', 'ranked') WHERE gpu_id = 'quick'"""
    (row,) = asked(market, query, tokens=LONG, max_age_days=1)
    assert row["reason"] == "not_offered_so"
    assert "age" in why_not_text(row)


@pytest.mark.parametrize(
    ("needs", "job", "reason", "says"),
    [
        (
            "'cpu' AS offload, 5e3 AS training_state_gib",
            {"gpus": 1},
            "host_memory_too_small",
            "each machine needs 5,000 GiB of host memory to load the model, "
            "but the largest that can be rented",
        ),
        (
            "800 AS node_network_gbps",
            {"gpus": 16, "min_gpus": 16},
            "network_too_slow",
            "with 800 Gbit/s between them, but the fastest that can be rented have 400",
        ),
        ("400 AS node_network_gbps", {"gpus": 16, "min_gpus": 16}, "ranked", "16 of it at Alpha"),
    ],
)
def test_why_not_names_host_memory_and_network(
    market: duckdb.DuckDBPyConnection, needs: str, job: Row, reason: str, says: str
) -> None:
    query = f""", done AS (FROM completed_jobs('asked')),
        planned AS (
            SELECT * REPLACE ({needs}), NULL::VARCHAR AS infeasible_reason FROM published_plans('done')
        ),
        ranked AS (FROM ranked_jobs('done', 'planned'))
        FROM why_not_for('done', 'planned', 'ranked') WHERE gpu_id = 'card'"""
    (row,) = asked(market, query, tokens=SHORT, **job)
    assert row["reason"] == reason
    assert says in why_not_text(row)


def test_the_parts_of_a_total_name_gpus_paid_for_but_unused(market: duckdb.DuckDBPyConnection) -> None:
    query = """, ranked AS (FROM cheapest_published('asked'))
        FROM ranked WHERE source = '{}'"""
    job: Row = {"tokens": SHORT, "gpu": "card", "gpus": 1}
    quoted = asked(market, query.format("quote"), quote="1 x card at 0.5", **job)
    own = asked(market, query.format("own"), own="1 x card at 0.5", **job)
    # An hour of training and ten minutes of set-up are two started hours.
    how = total_parts(quoted[0])["machine"]
    assert how.startswith("2.00 billed hours x 0.5000 USD: set-up 0.17, training 1.00, evaluation 0.00")
    assert how.endswith(", and 0.83 unused: the minimum, or a started billing step")
    said = total_parts(own[0])
    assert said["machine"].startswith("1.00 hours of electricity x 0.5000 USD: set-up 0.00")
    assert "unused" not in said["machine"]
    assert (said["disk"], said["data"]) == ("your own", "your own connection")
