"""Notes on the sources behind an answer."""

import json
from pathlib import Path

import duckdb
import pytest

from pipeline.home.paths import Home
from pipeline.questions.sources_behind import not_asked_note, replayed_sources
from tests.marts.database import case

SOURCES = """source,kind,terms_automated,needs_key,key_variables,disabled
a_key,prices,forbidden,true,A_KEY,
b_terms,prices,forbidden,false,B_KEY,
c_terms,prices,forbidden,false,"C_KEY, C_SECRET",
d_off,prices,forbidden,false,,gone
e_asked,prices,allowed,false,,
f_saved,prices,forbidden,false,,
g_older,prices,allowed,false,,
h_unpriced,prices,allowed,false,,
"""


@pytest.fixture
def market(tmp_path: Path) -> Path:
    """Two sources read on the 22nd, one of them from pages saved the day before, and one from its own day."""
    folder = tmp_path / "case"
    folder.mkdir()
    (folder / "sources.csv").write_text(SOURCES)
    (folder / "offers.csv").write_text(
        "source,instance_type,gpu_id,gpu_count,usd_per_hour,observed_at\n"
        "e_asked,one,card,1,1,2026-08-22 06:00:00+00\nf_saved,one,card,1,1,2026-08-21 06:00:00+00\n"
        "g_older,one,card,1,1,2026-08-22 06:00:00+00\n"
    )
    (folder / "capture_outcomes.csv").write_text(
        "source,day,stands,replayed\ne_asked,2026-08-22,true,false\nf_saved,2026-08-22,true,true\n"
        "g_older,2026-08-22,true,false\n"
    )
    return folder


def test_sources_that_are_not_asked_are_named_with_the_reason(market: Path, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")

    def note(connection: duckdb.DuckDBPyConnection, **environment: str) -> str | None:
        return not_asked_note(connection, home, environment)

    with case(market, ["FROM offers_latest"]) as connection:
        assert replayed_sources(connection) == {"f_saved"}
        keys = {"B_KEY": "b", "C_KEY": "c", "C_SECRET": "s"}
        assert note(connection) == "not asked: b_terms, c_terms (their terms); see gpufare sources"
        assert note(connection, **keys | {"C_SECRET": " "}) == (
            "not asked: c_terms (their terms); see gpufare sources"
        )
        assert note(connection, **keys) is None
        home.permissions.parent.mkdir(parents=True)
        choices = {"e_asked": False, "g_older": True, "h_unpriced": False, "b_terms": True}
        chosen = {name: {"asked": is_asked, "since": "2026-08-01"} for name, is_asked in choices.items()}
        home.permissions.write_text(json.dumps(chosen))
        assert note(connection) == (
            "not asked: c_terms (their terms), e_asked (you disabled them); see gpufare sources"
        )
        disabled = "not asked: e_asked (you disabled them); see gpufare sources"
        assert note(connection, **keys) == disabled
        home.permissions.write_text("{")
        assert str(note(connection)).startswith(f"{home.permissions}: it is damaged. ")
