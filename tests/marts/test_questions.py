"""Questions at a SQL prompt: the examples, the macros, and names that must not clash."""

import json
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.warehouse.query import reader

EXAMPLES = sorted((paths.SQL_DIR / "examples").glob("*.sql"))


@pytest.fixture(scope="module")
def published(sample_home: Home) -> Iterator[duckdb.DuckDBPyConnection]:
    with reader(sample_home.published) as connection:
        yield connection


def tables_of(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute(
        "SELECT table_name FROM duckdb_tables()"
        " WHERE database_name = current_database() AND schema_name = 'main' ORDER BY 1"
    ).fetchall()
    return [name for (name,) in rows]


def rows_of(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    found = connection.execute(query)
    columns = [column[0] for column in found.description]
    return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_says_what_it_answers_and_answers_it(
    example: Path, published: duckdb.DuckDBPyConnection
) -> None:
    text = example.read_text(encoding="utf-8")
    assert text.startswith("-- ")
    assert text.partition("\n")[0].endswith(("?", "."))
    rows = published.execute(text).fetchall()
    needs_a_second_day_or_trouble = example.stem in ("price_changes", "incidents")
    assert rows or needs_a_second_day_or_trouble


def test_every_table_and_macro_has_an_example(published: duckdb.DuckDBPyConnection) -> None:
    shown = "\n".join(path.read_text(encoding="utf-8") for path in EXAMPLES)
    words = set(re.findall(r"\w+", shown))
    asked = {"cheapest_for", "cost_of", "fits", "compare_gpus"}
    missing = (set(tables_of(published)) | asked) - words
    assert not missing, f"sql/examples shows nothing of {sorted(missing)}"


def test_a_cte_named_like_any_published_table_is_not_captured(published: duckdb.DuckDBPyConnection) -> None:
    job = "SELECT 'llama-3.2-1b' AS model, 'lora' AS method, 1e7 AS tokens"
    plain = published.execute(f"WITH asked AS ({job}) FROM cheapest_for('asked')").fetchall()
    assert plain
    names = tables_of(published)
    assert {"gpus", "plans", "rentals", "publication"} <= set(names)
    shadows = ", ".join(f"{name} AS ({job})" for name in names)
    for asked in ("offers", "gpus", "plans"):
        assert published.execute(f"WITH {shadows} FROM cheapest_for('{asked}')").fetchall() == plain


def test_cheapest_for_a_workload_is_the_published_ranking(published: duckdb.DuckDBPyConnection) -> None:
    three = "('llama-3.1-8b-lora-100m', 'llama-2-13b-full-1b', 'pretrain-1b-20b-tokens')"
    columns = "rank, gpu_id, gpu_count, source, total_usd, total_usd_low, total_usd_high, hours"
    asked = published.execute(
        f"""WITH asked AS (
                SELECT workload AS job, model, method, tokens, seq_len, lora_rank, max_gpus AS gpus,
                    max_hours, 'spot' AS kind
                  FROM workloads WHERE workload IN {three}
            )
            SELECT job AS workload, {columns} FROM cheapest_for('asked')
             WHERE rank <= 20 ORDER BY workload, rank"""
    ).fetchall()
    ranked = published.execute(
        f"""SELECT workload, {columns} FROM cheapest_gpu_per_workload
             WHERE workload IN {three} AND price_kind = 'spot' AND objective = 'cost'
               AND day = (SELECT as_of_day FROM publication)
             ORDER BY workload, rank"""
    ).fetchall()
    assert len(asked) > 30
    assert asked == ranked


def test_published_plans_give_the_answers_of_the_planner(published: duckdb.DuckDBPyConnection) -> None:
    """Random jobs of every kind, all in one relation."""
    draw = random.Random(15)
    workloads = rows_of(
        published, "SELECT DISTINCT model, method, seq_len, lora_rank FROM plans ORDER BY ALL"
    )
    choices = {
        "gpus": [1, 8, 64],
        "kind": ["any", "spot", "reserved", "on_demand, serverless"],
        "max_hours": [10, 100, math.inf],
        "objective": ["cost", "time", "pareto"],
        "country": ["eu", "us"],
        "exclude_gpu": ["h100", "ada"],
        "quote": ["8 x h100-sxm-80gb at 1.5"],
        "own": ["2 x rtx-4090 at 0.1"],
        "max_usd": [50, 5000],
        "evidence": ["interpolated"],
    }
    jobs = []
    for number in range(8):
        asked = {
            name: draw.choice(values) if draw.random() < 0.3 else None for name, values in choices.items()
        }
        jobs.append(
            {"job": f"{number}", "tokens": 10 ** draw.uniform(6, 10)} | draw.choice(workloads) | asked
        )
    columns = ", ".join(jobs[0])
    rows = ", ".join("(" + ", ".join("?" for _ in job) + ")" for job in jobs)
    query = f"""WITH asked AS (FROM (VALUES {rows}) AS v ({columns}))
                SELECT * EXCLUDE (observed_at) FROM {{}}('asked') ORDER BY job, rank"""
    given = [value for job in jobs for value in job.values()]

    def answers(macro: str) -> list[list[Any]]:
        found = published.execute(query.format(macro), given).fetchall()
        return [[f"{value:.9g}" if isinstance(value, float) else value for value in row] for row in found]

    planned = answers("cheapest_for")
    assert len(planned) > 500
    assert answers("cheapest_published") == planned


def test_the_price_list_has_every_ranked_offer_by_price(published: duckdb.DuckDBPyConnection) -> None:
    columns = [name for (name, *_) in published.execute("DESCRIBE price_list").fetchall()]
    query = f"SELECT {', '.join(columns)} FROM {{}} ORDER BY ALL"
    listed = published.execute(query.format("price_list")).fetchall()
    assert len(listed) > 500
    assert listed == published.execute(query.format("offers_latest WHERE ranked")).fetchall()
    first = "SELECT gpu_id, price_kind, usd_per_gpu_hour FROM price_list"
    in_order = published.execute(first).fetchall()
    assert in_order == sorted(in_order)


def test_defaults_and_ignored_columns_are_named(published: duckdb.DuckDBPyConnection) -> None:
    row = rows_of(
        published,
        """WITH asked AS (SELECT 'llama-3.1-8b' AS model, 1e7 AS tokens, 4096 AS sequence, 'mine' AS note)
           FROM cheapest_for('asked') WHERE rank = 1""",
    )[0]
    taken = json.loads(row["assumptions"])
    assert (taken["method"], taken["seq_len"], taken["lora_rank"]) == ("lora", 2048, 16)
    assert taken["ignored_columns"] == ["sequence", "note"]


def test_sequences_beyond_the_model_are_named(published: duckdb.DuckDBPyConnection) -> None:
    row = rows_of(
        published,
        """WITH asked AS (SELECT 'llama-2-7b' AS model, 1e7 AS tokens, 8192 AS seq_len)
           FROM cheapest_for('asked') WHERE rank = 1""",
    )[0]
    assert json.loads(row["assumptions"])["max_context"] == 4096


def test_tokens_are_per_epoch_as_the_answer_states(published: duckdb.DuckDBPyConnection) -> None:
    (job,) = rows_of(
        published,
        """WITH asked AS (SELECT 'llama-3.1-8b' AS model, 1e7 AS tokens, 3 AS epochs)
           SELECT tokens, job_assumptions FROM completed_jobs('asked')""",
    )
    assert job["tokens"] == 3e7
    taken = json.loads(job["job_assumptions"])
    assert (taken["epochs"], taken["tokens_per_epoch"]) == (3, 1e7)


def test_names_are_lists_or_text_in_any_spelling(published: duckdb.DuckDBPyConnection) -> None:
    query = """WITH asked AS (
                   SELECT 'llama-3.1-8b' AS model, 1e7 AS tokens, {} AS gpu, {} AS provider, 'eu' AS country)
               SELECT constraints FROM completed_jobs('asked')"""
    (text,) = rows_of(published, query.format("'RTX 4090, Hopper'", "'Vast.ai,runpod'"))
    (listed,) = rows_of(published, query.format("['rtx-4090', 'hopper']", "['vast', 'RunPod']"))
    assert text == listed
    wanted = {
        column: names["wanted"] for column, names in text["constraints"].items() if isinstance(names, dict)
    }
    assert {"rtx-4090", "h100-pcie-80gb", "h200-sxm-141gb"} < set(wanted["gpu_id"])
    # A card is that card alone, a family is every card of it.
    assert not {"rtx-4090-laptop", "a100-sxm-80gb"} & set(wanted["gpu_id"])
    assert wanted["provider"] == ["Vast.ai", "RunPod"]
    assert len(wanted["country"]) == 27


def test_a_model_may_be_named_by_its_id_on_the_hub(published: duckdb.DuckDBPyConnection) -> None:
    (job,) = rows_of(
        published,
        """WITH asked AS (SELECT 'meta-llama/Llama-3.1-8B' AS model, 1e7 AS tokens)
           SELECT job, model FROM completed_jobs('asked')""",
    )
    assert job["model"] == "llama-3.1-8b"


def test_examples_times_tokens_times_epochs_are_tokens(published: duckdb.DuckDBPyConnection) -> None:
    counted = rows_of(
        published,
        """WITH asked AS (
               SELECT 'llama-3.1-8b' AS model, 1000 AS examples, 500 AS tokens_per_example, 3 AS epochs
           )
           FROM cheapest_for('asked') WHERE rank = 1""",
    )[0]
    assert counted["tokens"] == 1_500_000


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ("'no-such-model' AS model, 1e6 AS tokens", "no model no-such-model; main.models lists them"),
        ("1e6 AS tokens", "name a model"),
        ("'llama-3.1-8b' AS model", "give tokens"),
        ("'llama-3.1-8b' AS model, -1 AS tokens", "above 0"),
        (
            "'llama-3.1-8b' AS model, 1e6 AS tokens, 'dora' AS method",
            "dora is none of full, lora, pretrain, qlora",
        ),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'on_demands' AS kind", "kind on_demands is none of"),
        (
            "'llama-3.1-8b' AS model, 1e6 AS tokens, 'speed' AS objective",
            "objective speed is none of cost, pareto, time",
        ),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 0 AS max_hours", "max_hours must be above 0"),
        (
            "'llama-3.1-8b' AS model, 1e6 AS tokens, 90 AS min_fit_probability",
            "min_fit_probability must be at most 1, not 90",
        ),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'axolotl' AS stack", "stack axolotl is none of"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'yes' AS checkpointing", "checkpointing yes is none of"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'h10' AS gpu", "no gpu h10; the nearest are h100"),
        (
            "'llama-3.1-8b' AS model, 1e6 AS tokens, 'l4, h10' AS exclude_gpu",
            r"no gpu h10 \(in exclude_gpu\)",
        ),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'runpd' AS provider", "no provider runpd; .* runpod"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, ['vst'] AS source", "no source vst; the nearest are vast"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'cheap' AS tier", "tier cheap is none of community, ded"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'germny' AS country", "the nearest are germany"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'eu' AS continent", "give country eu"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'sure' AS evidence", "evidence sure is none of extrapol"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'adm' AS optimizer", "optimizer adm is none of adamw, "),
        (
            "'llama-3.1-8b' AS model, 1e6 AS tokens, 'x_proj' AS lora_targets",
            "lora_targets x_proj is none of",
        ),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'fp64' AS training_precision", "fp64 is none of amp, bf16"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'nf4' AS quantization", "quantization is for method qlora"),
        (
            "'llama-3.1-8b' AS model, 1e6 AS tokens, 9 AS min_gpus, 8 AS gpus",
            "min_gpus 9 is more than gpus 8",
        ),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 4 AS max_gpus", "no column 'max_gpus'; did you mean gpus"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'spot' AS price_kind", "did you mean kind"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 0 AS gpus", "gpus must be at least 1, not 0"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 0 AS epochs", "epochs must be above 0, not 0"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'h100 at 2' AS quote", "quote h100 at 2 is not like 8 x"),
        (
            "'llama-3.1-8b' AS model, 1e6 AS tokens, '8 x h100 at 2' AS quote",
            "h100 is several GPUs, name one",
        ),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, '2 rtx-4090' AS own", "own 2 rtx-4090 is not like 2 x"),
        ("'llama-3.1-8b' AS model, 1e6 AS tokens, 'disk' AS offload", "offload disk is none of cpu"),
    ],
)
def test_a_wrong_job_is_refused_by_name(published: duckdb.DuckDBPyConnection, job: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        published.execute(
            f"WITH asked AS (SELECT 'mine' AS job, {job}) FROM cheapest_for('asked')"
        ).fetchall()


def test_limits_and_kinds_hold(published: duckdb.DuckDBPyConnection) -> None:
    query = """WITH asked AS (
                   SELECT 'llama-3.1-8b' AS model, 'qlora' AS method, 1e9 AS tokens, {} )
               FROM cheapest_for('asked')"""
    small = rows_of(published, query.format("2 AS gpus, 30 AS max_hours, 'time' AS objective"))
    assert small
    assert max(row["gpu_count"] for row in small) <= 2
    assert max(row["hours"] for row in small) <= 30
    by_time = [(round(row["hours"], 2), row["total_usd"]) for row in small]
    assert by_time == sorted(by_time)
    assert {row["price_kind"] for row in small} == {"on_demand"}
    any_kind = rows_of(published, query.format("'any' AS kind"))
    assert {row["price_kind"] for row in any_kind} == {"on_demand", "flex_start", "spot", "serverless"}
    # A reservation is for jobs that use half of its term.
    two = rows_of(published, query.replace("1e9", "1e10").format("'reserved, spot' AS kind"))
    assert {row["price_kind"] for row in two} == {"reserved", "spot"}


QUESTION = """WITH asked AS (
        SELECT 'llama-2-13b' AS model, 'lora' AS method, 1e10 AS tokens, {} AS job )
    SELECT rank, total_usd, hours, meets_deadline, longer_wait_usd, longer_wait_hours, max_hours, assumptions
    FROM cheapest_for('asked')"""


def test_a_question_without_a_deadline_defaults_to_a_week(published: duckdb.DuckDBPyConnection) -> None:
    rows = rows_of(published, QUESTION.format("1"))
    unlimited = rows_of(published, QUESTION.format("'infinity'::DOUBLE AS max_hours, 1"))
    assert {(row["max_hours"], row["meets_deadline"]) for row in rows} == {(168, True)}
    assert max(row["hours"] for row in rows) <= 168 < max(row["hours"] for row in unlimited)
    assert [row["total_usd"] for row in rows] == sorted(
        row["total_usd"] for row in unlimited if row["hours"] <= 168
    )
    # The cheapest of all is what a longer wait buys.
    assert unlimited[0]["hours"] > 168
    assert {(row["longer_wait_usd"], row["longer_wait_hours"]) for row in rows} == {
        (unlimited[0]["total_usd"], unlimited[0]["hours"])
    }
    assert {row["longer_wait_usd"] for row in unlimited} == {None}
    assert json.loads(rows[0]["assumptions"])["max_hours"] == 168
    assert "max_hours" not in json.loads(unlimited[0]["assumptions"])


def test_if_nothing_finishes_in_a_week_answers_near_the_fastest_are_ranked(
    published: duckdb.DuckDBPyConnection,
) -> None:
    question = QUESTION.replace("1e10", "1e11")
    rows = rows_of(published, question.format("1 AS gpus, 1"))
    assert {row["meets_deadline"] for row in rows} == {False}
    assert max(row["hours"] for row in rows) <= 1.25 * min(row["hours"] for row in rows)
    assert [row["total_usd"] for row in rows] == sorted(row["total_usd"] for row in rows)
    assert rows[0]["hours"] > 168
    assert rows[0]["longer_wait_usd"] < rows[0]["total_usd"]
    # A deadline that is given is kept to, if nothing is left.
    assert rows_of(published, question.format("1 AS gpus, 168 AS max_hours, 1")) == []


def test_uncertain_fits_are_ranked_on_request(published: duckdb.DuckDBPyConnection) -> None:
    query = """WITH asked AS (
                   SELECT 'llama-3.1-8b' AS model, 'full' AS method, 1e8 AS tokens {} )
               FROM cheapest_for('asked')"""
    usual = rows_of(published, query.format(""))
    bold = rows_of(published, query.format(", 0.5 AS min_fit_probability"))
    assert min(row["fit_probability"] for row in usual) >= 0.9
    assert {row["verdict"] for row in usual} == {"fits"}
    assert 0.5 <= min(row["fit_probability"] for row in bold) < 0.9
    assert {row["verdict"] for row in bold if row["fit_probability"] < 0.9} == {"tight"}
    assert bold[0]["total_usd"] <= usual[0]["total_usd"]


def test_training_from_scratch_downloads_no_model(published: duckdb.DuckDBPyConnection) -> None:
    sizes = published.execute(
        """SELECT method = 'pretrain' AS from_scratch, min(model_download_gib), max(model_download_gib)
             FROM plans GROUP BY ALL ORDER BY 1"""
    ).fetchall()
    assert [row[0] for row in sizes] == [False, True]
    assert sizes[0][1] > 1
    assert sizes[1][1:] == (0, 0)


def test_fits_answers_yes_and_no(published: duckdb.DuckDBPyConnection) -> None:
    (large,) = rows_of(published, "FROM fits('llama-2-70b', 'lora', 'rtx-4090')")
    assert large["verdict"] == "does_not_fit"
    assert large["infeasible_reason"] == "too_little_memory"
    (small,) = rows_of(published, "FROM fits('llama-3.2-1b', 'qlora', 'h100-sxm-80gb')")
    assert small["verdict"] == "fits"


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("fits('llama-2-70b', 'lora', 'rtx-9999')", "no gpu rtx-9999; the nearest are "),
        ("fits('llama-2-70b', 'lora', 'H100')", "H100 is several GPUs: name one of h100-"),
        (
            "fits('llama-2-70b', 'lora', 'l40s', gpus := 3)",
            "plans are for 1, 2, 4, 8, 16, 32 and 64 GPUs, not",
        ),
        (
            "fits('llama-2-70b', 'lora', 'l40s', tokens_per_sequence := 1.5)",
            "must be a whole number, not 1.5",
        ),
        ("fits('llama-2-70b', 'lora', 'l40s', rank_of_adapters := 0)", "lora_rank must be at least 1, not 0"),
        ("fits('llama-2-70b', 'lora', NULL)", "name a GPU"),
        ("fits_on('hopper')", "hopper is several GPUs: name one of "),
        ("fits_on('l40s', gpus := 0)", "plans are for 1, 2, 4, 8, 16, 32 and 64 GPUs, not for 0"),
        ("fits_on('l40s', tokens_per_sequence := 0)", "tokens_per_sequence must be at least 1, not 0"),
        ("compare_gpus('l40x', 'rtx-4090')", "no gpu l40x; the nearest are "),
        ("compare_gpus('rtx-4090', 'nvidia')", "nvidia is several GPUs: name one of .*, ..."),
    ],
)
def test_refusals_of_short_questions(published: duckdb.DuckDBPyConnection, question: str, says: str) -> None:
    with pytest.raises(duckdb.Error, match=says):
        published.execute(f"FROM {question}").fetchall()


def test_short_questions_take_the_names_that_jobs_take(published: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT model, method, gpu_id FROM fits('meta/Llama-3.1-8B-Instruct', 'QLoRA', 'RTX 4090')"
    assert published.execute(query).fetchall() == [("llama-3.1-8b", "qlora", "rtx-4090")]
    usual = published.execute("FROM compare_gpus('l40s', 'rtx-4090')").fetchall()
    assert published.execute("FROM compare_gpus('L40S', 'RTX_4090')").fetchall() == usual


def test_compare_gpus_shows_both(published: duckdb.DuckDBPyConnection) -> None:
    rows = {row["fact"]: row for row in rows_of(published, "FROM compare_gpus('l40s', 'rtx-4090')")}
    assert float(rows["memory_gb"]["one_value"]) == 48
    assert float(rows["memory_gb"]["other_value"]) == 24
    assert all(row["meaning"] for row in rows.values())


def test_every_table_column_and_macro_is_described(published: duckdb.DuckDBPyConnection) -> None:
    bare = published.execute(
        """WITH described AS (
               SELECT table_name || '.' || column_name AS name, comment, database_name FROM duckdb_columns()
                WHERE schema_name <> 'history'
               UNION ALL
               SELECT table_name, comment, database_name FROM duckdb_tables()
                WHERE schema_name <> 'history'
               UNION ALL
               SELECT function_name, comment, database_name FROM duckdb_functions()
                WHERE function_type LIKE '%macro'
           )
           SELECT name FROM described
            WHERE database_name = current_database() AND coalesce(comment, '') = ''"""
    ).fetchall()
    assert not bare


def test_macros_need_no_extension(published: duckdb.DuckDBPyConnection) -> None:
    """DuckDB in a browser has only its core functions until it loads an extension from the network."""
    extended = published.execute(
        """WITH definitions AS (
               SELECT
                   function_name AS macro,
                   CASE function_type WHEN 'macro' THEN 'SELECT ' ELSE '' END || macro_definition AS query
               FROM duckdb_functions()
               WHERE database_name = current_database() AND function_type LIKE '%macro'
           ),
           calls (macro, name) AS (
               SELECT macro, unnest(json_extract_string(json_serialize_sql(query), '$..function_name'))
               FROM definitions
           )
           SELECT DISTINCT macro, name FROM calls
            WHERE name IN (
                SELECT function_name FROM duckdb_functions() WHERE extension_name <> 'core_functions'
            )"""
    ).fetchall()
    assert not extended


def test_vram_requirements_state_their_settings_and_the_smallest_cards_probability(
    published: duckdb.DuckDBPyConnection,
) -> None:
    rows = rows_of(published, "FROM vram_requirements WHERE minimum_gpu_id IS NOT NULL")
    assert len(rows) > 20
    for row in rows:
        assert {"micro_batch", "optimizer", "stack"} <= json.loads(row["settings"]).keys()
        assert 0.5 <= row["minimum_fit_probability"] <= 1
    smaller = published.execute(
        """SELECT v.model FROM vram_requirements AS v
             JOIN plans AS p USING (model, method, seq_len) JOIN gpus AS g ON g.gpu_id = p.gpu_id
            WHERE p.lora_rank IS NOT DISTINCT FROM v.lora_rank AND p.gpu_count = 1 AND p.offload = ''
              AND p.verdict <> 'does_not_fit' AND g.memory_gb < v.minimum_memory_gb
              AND g.derived_from IS NULL AND g.gpu_id IN (SELECT gpu_id FROM offers)"""
    ).fetchall()
    assert not smaller
