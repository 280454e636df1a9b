"""The same offers, plans and parameters give the same tables to the last digit, however the work is split."""

import duckdb

from pipeline.contracts import paths
from pipeline.contracts.paths import Home

MARTS = (
    "offers_latest",
    "rentals",
    "cheapest_gpu_per_workload",
    "cost_hours_pareto",
    "gpu_compare",
    "market_index",
    "price_changes",
    "reserved_break_even",
    "scaling",
    "spot_savings",
    "vram_requirements",
    "why_not",
)


def test_a_second_run_on_one_thread_gives_the_same_tables(sample_home: Home) -> None:
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET threads = 1")
    connection.execute(f"ATTACH '{sample_home.published}' AS published (READ_ONLY)")
    connection.execute("ATTACH ':memory:' AS again")
    connection.execute("COPY FROM DATABASE published TO again")
    connection.execute("USE again")
    connection.execute(
        "SET VARIABLE as_of_day = (SELECT as_of_day FROM published.publication);"
        "SET VARIABLE as_of_time = (SELECT as_of_time FROM published.publication)"
    )
    for mart in MARTS:
        query = (paths.SQL_DIR / "marts" / f"{mart}.sql").read_text(encoding="utf-8")
        connection.execute(f"DELETE FROM main.{mart}")
        connection.execute(f"INSERT INTO main.{mart} BY NAME {query}")
        differing = connection.execute(
            f"(FROM main.{mart} EXCEPT ALL FROM published.{mart})"
            f" UNION ALL (FROM published.{mart} EXCEPT ALL FROM main.{mart})"
        ).fetchall()
        assert differing == [], mart
        rows = connection.execute(f"SELECT count(*) FROM published.{mart}").fetchall()
        assert rows[0][0] > 0 or mart == "price_changes", mart
