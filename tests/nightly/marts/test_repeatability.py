"""The same offers, plans and parameters give the same tables to the last digit, however the work is split."""

import pytest

from pipeline.home.paths import Home
from pipeline.warehouse import marts
from pipeline.warehouse.connection import connect
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.marts import fill, is_timeless


def test_a_second_run_on_one_thread_and_in_more_parts_gives_the_same_tables(
    sample_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marts, "ROWS_IN_A_PART", 150_000)
    connection = connect()
    connection.execute("SET threads = 1")
    connection.execute(f"ATTACH '{sample_home.published}' AS published (READ_ONLY)")
    connection.execute("ATTACH ':memory:' AS again")
    connection.execute("COPY FROM DATABASE published TO again")
    connection.execute("USE again")
    connection.execute(
        "SET VARIABLE as_of_day = (SELECT as_of_day FROM published.publication);"
        "SET VARIABLE as_of_time = (SELECT as_of_time FROM published.publication)"
    )
    for mart in Lineage(connection).marts():
        if is_timeless(mart):
            continue
        connection.execute(f"DELETE FROM main.{mart}")
        fill(connection, mart)
        differing = connection.execute(
            f"(FROM main.{mart} EXCEPT ALL FROM published.{mart})"
            f" UNION ALL (FROM published.{mart} EXCEPT ALL FROM main.{mart})"
        ).fetchall()
        assert differing == [], mart
        rows = connection.execute(f"SELECT count(*) FROM published.{mart}").fetchall()
        assert rows[0][0] > 0 or mart == "price_changes", mart
