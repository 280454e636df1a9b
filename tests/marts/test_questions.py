"""Questions at a SQL prompt: the examples, the macros on the whole catalogue, and names that must not "
"clash."""

import math
import random
import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.warehouse.query import reader

MISSING_IN_1_4 = frozenset({
    "ago", "arg_max_nulls_last", "arg_min_nulls_last", "assert_true", "binom", "bitstring_byte_comparable",
    "combine_aggr", "create_external_resource", "days_in_month", "decimal_average", "decimal_division",
    "deregister_external_resource", "destroy_external_resource", "duckdb_available_metrics",
    "duckdb_coordinate_systems", "duckdb_dialects", "duckdb_eviction_queues",
    "duckdb_extension_repositories", "duckdb_external_resource_types", "duckdb_external_resources",
    "duckdb_grammar_extensions", "duckdb_profiling_settings", "duckdb_secret_type_parameters",
    "duckdb_triggers", "get_type", "hive_partition_component", "if", "index_key", "invoke", "lttb",
    "make_type", "overlay", "parse_formatted_bytes", "path_join", "pg_sleep", "python_arrow_scan",
    "read_duckdb", "read_single_csv_file", "register_external_resource", "register_external_resource_type",
    "setval", "sleep_ms", "st_asbinary", "st_astext", "st_aswkb", "st_aswkt", "st_crs", "st_geomfromwkb",
    "st_intersects_extent", "st_setcrs", "struct_keys", "struct_values", "switch", "to_aggregate_state",
    "variant_array_length", "variant_comparator", "variant_contains", "variant_exists",
    "variant_extract_string", "variant_group_array", "variant_group_object", "variant_keys",
    "variant_normalize", "variant_type", "vertex_extract",
})  # fmt: skip
"""Functions of this DuckDB that DuckDB 1.4 lacks; a nightly test compares them with its own list."""

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


# Examples that plan a job, which takes a second, are run by the tests of the README.
PLANNING = re.compile(r"\b(cheapest_for|fits|machine_ranks_for|nearest_for|why_not_for)\(")


def test_examples_say_what_they_answer_and_answer_it(published: duckdb.DuckDBPyConnection) -> None:
    wrong, shown = [], set()
    for example in EXAMPLES:
        text = example.read_text(encoding="utf-8")
        shown |= set(re.findall(r"\w+", text))
        asks = re.match(r"-- .*[?.]$", text.partition("\n")[0])
        needs_a_second_day_runs_or_trouble = example.stem in (
            "price_changes",
            "incidents",
            "own_corrections",
        )
        answers = (
            needs_a_second_day_runs_or_trouble or PLANNING.search(text) or published.execute(text).fetchall()
        )
        if not asks or not answers:
            wrong.append(example.stem)
    assert wrong == []
    assert {*tables_of(published), "cheapest_for", "cost_of", "fits", "compare_gpus"} - shown == set()


def test_published_plans_give_the_answers_of_the_planner(published: duckdb.DuckDBPyConnection) -> None:
    """Random jobs of every kind, all in one relation."""
    draw = random.Random(15)
    workloads = rows_of(
        published, "SELECT DISTINCT model, method, seq_len, lora_rank FROM plans ORDER BY ALL"
    )
    choices = {
        "gpus": [1, 8, 64], "kind": ["any", "spot", "reserved", "on_demand, serverless"],
        "max_hours": [10, 100, math.inf], "objective": ["cost", "time"], "country": ["eu", "us"],
        "exclude_gpu": ["h100", "ada"], "quote": ["8 x h100-sxm-80gb at 1.5"],
        "own": ["2 x rtx-4090 at 0.1"], "max_usd": [50, 5000], "evidence": ["interpolated"],
    }  # fmt: skip
    jobs = [
        {"job": f"{number}", "tokens": 10 ** draw.uniform(6, 10)}
        | draw.choice(workloads)
        | {name: draw.choice(values) if draw.random() < 0.3 else None for name, values in choices.items()}
        for number in range(8)
    ]
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


def test_names_are_lists_or_text_in_any_spelling(published: duckdb.DuckDBPyConnection) -> None:
    text, listed, hub = rows_of(
        published,
        """WITH asked (job, model, tokens, gpu, provider, country) AS (
            VALUES ('1', 'llama-3.1-8b', 1e7, 'RTX 4090, Hopper', 'Vast.ai,runpod', 'eu'),
                ('2', 'llama-3.1-8b', 1e7, ['rtx-4090', 'hopper']::VARCHAR,
                    ['vast', 'RunPod']::VARCHAR, 'eu'),
                ('3', 'meta-llama/Llama-3.1-8B-Instruct', 1e7, '4090', NULL, NULL))
        SELECT constraints, model FROM completed_jobs('asked') ORDER BY job""",
    )
    assert text == listed
    wanted = {name: names["wanted"] for name, names in text["constraints"].items() if isinstance(names, dict)}
    assert {"rtx-4090", "h100-pcie-80gb", "h200-sxm-141gb"} < set(wanted["gpu_id"])
    # A card is that card alone, a family is every card of it.
    assert not {"rtx-4090-laptop", "rtx-4090-48gb", "a100-sxm-80gb"} & set(wanted["gpu_id"])
    assert wanted["provider"] == ["Vast.ai", "RunPod"]
    assert len(wanted["country"]) == 27
    assert (hub["model"], hub["constraints"]["gpu_id"]["wanted"]) == ("llama-3.1-8b", ["rtx-4090"])
    meant = dict(published.execute("SELECT key, meanings FROM job_names WHERE setting = 'gpu'").fetchall())
    assert {"rtx-4090", "rtx-4090-48gb", "rtx-4090-laptop"} <= set(meant["rtx"])
    assert meant["a100sxm80gb"] == ["a100-sxm-80gb"]


def test_a_constraint_on_a_card_without_a_form_factor_means_each_of_them(
    published: duckdb.DuckDBPyConnection,
) -> None:
    """But not a slower one, and not where one card is wanted."""
    meant = {
        "A100 80GB": {"a100-80gb", "a100-pcie-80gb", "a100-pcie-nvlink-80gb", "a100-sxm-80gb"},
        "rtx-pro-6000": {"rtx-pro-6000", "rtx-pro-6000-server", "rtx-pro-6000-workstation"},
        "rtx-4060": {"rtx-4060"},
        "a100-sxm-80gb": {"a100-sxm-80gb"},
    }
    jobs = " UNION ALL ".join(f"SELECT '{name}' AS job, '{name}' AS gpu" for name in meant)
    found = published.execute(
        f"""WITH asked AS (SELECT *, 'llama-3.1-8b' AS model, 1e6 AS tokens FROM ({jobs}))
        SELECT job, constraints.gpu_id.wanted FROM completed_jobs('asked')"""
    ).fetchall()
    assert {job: set(cards) for job, cards in found} == meant
    other = "SELECT count(*) FROM gpus WHERE one_gpu(gpu_id) <> gpu_id"
    assert published.execute(other).fetchall() == [(0,)]


def test_models_are_known_by_their_ids_on_the_hub_and_their_other_names(
    published: duckdb.DuckDBPyConnection,
) -> None:
    meant = published.execute(
        """WITH named AS (
            SELECT hf_id AS job, model AS meant FROM models WHERE hf_id IS NOT NULL
            UNION ALL
            SELECT 'Someone/' || upper(name) || '-Instruct', model FROM model_names
        ),
        asked AS (SELECT job, job AS model, 1e6 AS tokens FROM named)
        SELECT job, model, meant, json_extract_string(job_assumptions, 'model'), refusal
        FROM checked_jobs('asked') JOIN named USING (job)"""
    ).fetchall()
    assert len(meant) > 140
    assert [row for row in meant if row[1] != row[2] or row[4]] == []
    planned_as = {job: assumed for job, _, _, assumed, _ in meant}
    assert planned_as["Someone/QWEN2.5-CODER-7B-Instruct"] == "qwen2.5-7b"
    assert planned_as["Qwen/Qwen2.5-7B"] is None


@pytest.mark.parametrize(
    ("named", "method", "says"),
    [
        ("unsloth/Meta-Llama-3.1-8B-bnb-4bit", "qlora", None),
        (
            "unsloth/Meta-Llama-3.1-8B-bnb-4bit",
            "lora",
            "quantized to 4 bits: give method qlora, or model llama-3.1-8b",
        ),
        ("unsloth/Meta-Llama-3.1-8B-bnb-4bit", "full", "quantized to 4 bits"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "qlora", "the nearest are qwen2.5-7b, "),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "qlora", "the nearest are qwen2.5-7b, "),
        ("RedHatAI/Meta-Llama-3.1-8B-FP8", "lora", "the nearest are llama-3.1-8b, "),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "lora", "the nearest are qwen2.5-7b, "),
        ("llama-3-3b", "lora", "no model llama-3-3b; "),
        ("Llama 3 3B", "lora", "no model Llama 3 3B; "),
        ("gemma-31b", "lora", "no model gemma-31b; "),
    ],
)
def test_a_checkpoint_is_not_planned_as_another(
    named: str, method: str, says: str | None, published: duckdb.DuckDBPyConnection
) -> None:
    ((refusal,),) = published.execute(
        """WITH asked AS (SELECT $1 AS model, $2 AS method, 1e6 AS tokens)
        SELECT refusal FROM checked_jobs('asked')""",
        [named, method],
    ).fetchall()
    assert refusal is None if says is None else says in refusal


def test_ones_own_models_and_gpus_are_no_others(published: duckdb.DuckDBPyConnection) -> None:
    """Even if a model has the other name of a published one, or a GPU is described as a published one is."""
    added = {"models": ("model", "qwen2.5-coder-7b", "qwen2.5-0.5b"), "gpus": ("gpu_id", "acme", "h100-80gb")}
    for table, (key, own, described_as) in added.items():
        published.execute(
            f"""CREATE TEMP TABLE {table} AS
            FROM gpufare.main.{table}
            UNION ALL
            SELECT * REPLACE ('{own}' AS {key}) FROM gpufare.main.{table} WHERE {key} = '{described_as}'"""
        )
    try:
        models = published.execute(
            """WITH asked (job, model, tokens) AS (
                VALUES ('1', 'qwen2.5-coder-7b', 1e6), ('2', 'Qwen/Qwen2.5-Coder-7B-Instruct', 1e6)
            )
            SELECT model FROM completed_jobs('asked')"""
        ).fetchall()
        assert models == [("qwen2.5-coder-7b",)] * 2
        cards = """SELECT any_form_factor(cards, ['acme']), any_form_factor(cards, ['h100-80gb'])
            FROM card_offers()"""
        ((own, published_ones),) = published.execute(cards).fetchall()
        assert own == ["acme"]
        assert "h100-sxm-80gb" in published_ones
        assert "acme" not in published_ones
    finally:
        for table in added:
            published.execute(f"DROP TABLE temp.{table}")


def test_an_unknown_name_is_refused_with_the_nearest(published: duckdb.DuckDBPyConnection) -> None:
    """All in one relation: each job has its refusal."""
    refusals = {
        "h10": "no gpu h10; the nearest are h100, h100-, h10",
        "l40x": "no gpu l40x; the nearest are l40, l40s, l4",
        "llama-3.1-9b": "no model llama-3.1-9b; the nearest are llama-3.1-8b, ",
        "runpd": "no provider runpd; the nearest are runpod",
        "germny": "no country germny; the nearest are germany",
        "vst": "no source vst; the nearest are vast",
    }
    settings = dict(zip(refusals, ("gpu", "gpu", "model", "provider", "country", "source"), strict=True))
    jobs = " UNION ALL BY NAME ".join(
        f"SELECT '{name}' AS job, '{name}' AS {setting}, '1e6' AS tokens"
        + ("" if setting == "model" else ", 'llama-3.1-8b' AS model")
        for name, setting in settings.items()
    )
    query = f"WITH asked AS ({jobs}) SELECT job, refusal FROM checked_jobs('asked')"
    found = dict(published.execute(query).fetchall())
    assert {name: said for name, said in found.items() if not said.startswith(refusals[name][:26])} == {}
    assert found.keys() == refusals.keys()


def test_short_questions_take_the_names_that_jobs_take_and_refuse_others(
    published: duckdb.DuckDBPyConnection,
) -> None:
    query = """SELECT one_gpu('RTX 4090'), one_gpu('H100'), planned_gpus(64), sequence_tokens(1),
        sequence_tokens(NULL)"""
    assert published.execute(query).fetchall() == [("rtx-4090", "h100-sxm-80gb", 64, 1, None)]
    counts = "plans are for 1, 2, 4, 8, 16, 32 and 64 GPUs, not for "
    refused = {
        "one_gpu('rtx-9999')": "no gpu rtx-9999; the nearest are rtx$",
        "one_gpu('l40x')": "no gpu l40x; the nearest are l40, l40s, l40g$",
        "one_gpu('zzz')": "no gpu zzz; gpufare gpus lists them",
        "one_gpu('Hopper')": "Hopper is several models of GPU: name one of .*h100-",
        "one_gpu('nvidia')": "nvidia is several models of GPU: name one of .*, ...$",
        "one_gpu(NULL)": "name a GPU; gpufare gpus lists them",
        "one_gpu(' ')": "name a GPU; gpufare gpus lists them",
        "planned_gpus(3)": f"{counts}3",
        "planned_gpus(128)": f"{counts}128",
        "planned_gpus(NULL)": f"{counts}null",
        "sequence_tokens(0)": "tokens_per_sequence must be at least 1, not 0",
        "sequence_tokens(1.5)": "tokens_per_sequence must be a whole number, not 1.5",
        "sequence_tokens(2e9)": "tokens_per_sequence must be at most 1e.09, not 2e.09",
    }
    for question, says in refused.items():
        with pytest.raises(duckdb.Error, match=says):
            published.execute(f"SELECT {question}").fetchall()


def test_macros_and_examples_run_in_a_browser_and_in_older_versions(
    published: duckdb.DuckDBPyConnection,
) -> None:
    """DuckDB in a browser has only its core functions until it loads an extension from the network."""
    defined = """SELECT
            function_name,
            CASE function_type WHEN 'macro' THEN 'SELECT ' ELSE '' END || macro_definition
        FROM duckdb_functions()
        WHERE database_name = current_database() AND function_type LIKE '%macro'"""
    queries = published.execute(defined).fetchall()
    queries += [(example.name, example.read_text(encoding="utf-8")) for example in EXAMPLES]
    asked = """SELECT DISTINCT unnest(json_extract_string(json_serialize_sql(?), '$..function_name'))"""
    calls = {
        (where, name) for where, query in queries for (name,) in published.execute(asked, [query]).fetchall()
    }
    extended = "SELECT function_name FROM duckdb_functions() WHERE extension_name <> 'core_functions'"
    refused = {name for (name,) in published.execute(extended).fetchall()} | MISSING_IN_1_4
    assert {("cheapest_for", "query_table"), ("countries.sql", "count")} & calls
    assert {call for call in calls if call[1] in refused} == set()
