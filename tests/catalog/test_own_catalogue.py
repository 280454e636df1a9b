"""A user's own GPUs and workloads: kept in the home, published beside the catalogue's, never in its way."""

import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.catalog.own import OwnCatalogue, OwnGpu, read_own_catalogue
from pipeline.catalog.tables import catalog_rows
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents
from pipeline.refresh.refresh import refresh
from pipeline.warehouse.build import build
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.load import load_own
from pipeline.warehouse.plan_cache import kept_file
from pipeline.warehouse.query import ask, reader
from tests.conftest import PAGES, gpufare
from tests.nightly.stress.homes import small_catalogue
from tests.pages_server import PagesServer

DAY = date(2026, 8, 22)
NOW = datetime(2026, 8, 23, 6, tzinfo=UTC)
COLUMNS = tuple(OwnGpu.model_fields)
GPUS = ",".join(COLUMNS)
LABEL = "vbm-96c-1024gb-8-zz9-gpu"
"""The label of an offer on the sample pages whose card is not in the catalogue."""
JOBS = "workload,model,method,tokens\n"


def gpu(gpu_id: str = "mine-48gb", like: str = "l40s", **changes: object) -> str:
    """A line of gpus.csv: the specifications of a card of the catalogue under another name."""
    (found,) = (row for row in catalog_rows("gpus.csv") if row["gpu_id"] == like)
    cells = {**found, "gpu_id": gpu_id, "labels": ""} | changes
    cells |= {"source": "", "notes": ""}
    return ",".join(str(cells[column]) for column in COLUMNS)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home").mkdir()
    return Home(tmp_path / "home")


# ------------------------------------------------------------------ what a file may say


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpu_id": "h200-sxm-141gb"}, "is the name of a GPU of the catalogue, which is used"),
        ({"gpu_id": "My GPU"}, "gpu_id: 'My GPU' is not a name"),
        ({"memory_gb": "-1"}, "memory_gb: Input should be greater than 0"),
        ({"memory_gb": "nan"}, "memory_gb: Input should be"),
        ({"bandwidth_gb_s": ""}, "bandwidth_gb_s: Field required"),
        ({"vendor": "acme"}, "vendor: Input should be 'nvidia', 'amd' or 'intel'"),
        ({"nvlink_gb_s": "600"}, "nvlink_gb_s and nvlink_topology belong together"),
        ({"usable_memory_gib": "90"}, "usable_memory_gib is 90, of 48 GB"),
    ],
)
def test_a_gpu_that_cannot_be_is_named_and_the_others_are_read(
    home: Home, changes: dict[str, object], words: str
) -> None:
    home.gpus.write_text("\n".join([GPUS, gpu(**{"gpu_id": "bad"} | changes), gpu("good"), ""]))  # type: ignore[arg-type]
    found = read_own_catalogue(home)
    assert [each.gpu_id for each in found.gpus] == ["good"]
    ((file, problem),) = found.problems
    assert file == home.gpus
    assert problem.startswith(f"{home.gpus}, line 2: skipped: ")
    assert words in problem


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("llama-3.1-8b-lora-100m,llama-3.1-8b,lora,1M", "is the name of a workload of the catalogue"),
        ("bad,llama-3.1-8b,sft,1M", "method: Input should be"),
        ("bad,llama-3.1-8b,lora,many", "'many' is not a number such as 100M"),
        ("bad,llama-3.1-8b,lora,", "tokens: Field required"),
        ("bad,lama-3.1-8b,lora,1M", "model 'lama-3.1-8b' is not known: did you mean 'llama-3.1-8b'?"),
    ],
)
def test_a_workload_that_cannot_be_is_named_and_the_others_are_read(
    home: Home, line: str, words: str
) -> None:
    home.workloads.write_text(f"{JOBS}{line}\ngood,llama-3.1-8b,qlora,40M\n")
    found = read_own_catalogue(home)
    assert [job.workload for job in found.workloads] == ["good"]
    ((_, problem),) = found.problems
    assert words in problem


def test_what_a_workload_leaves_open_is_what_a_question_leaves_open(home: Home) -> None:
    home.workloads.write_text(
        "workload,model,method,examples,tokens_per_example,epochs,seq_len\n"
        "a,llama-3.1-8b,qlora,50K,800,3,\nb,llama-3.1-8b,full,1M,8000,1,200000\n"
    )
    found = read_own_catalogue(home)
    (row,) = found.rows()["workloads"]
    assert (row["tokens"], row["seq_len"], row["lora_rank"], row["max_gpus"]) == (120e6, 2048, 16, 8)
    assert (row["max_hours"], row["title"]) == (None, "a")
    ((_, problem),) = found.problems
    assert "b: skipped: seq_len is 200000, and llama-3.1-8b takes at most 131072" in problem


def test_an_unreadable_file_leaves_the_others(home: Home) -> None:
    home.gpus.write_bytes(b"\xff\xfe\x00")
    home.workloads.write_text(f"{JOBS}good,llama-3.1-8b,qlora,40M\n")
    found = read_own_catalogue(home)
    assert [job.workload for job in found.workloads] == ["good"]
    ((_, problem),) = found.problems
    assert "gpus.csv is UTF-16: save it as CSV in UTF-8; its GPUs are skipped" in problem


def test_an_empty_home_has_the_state_of_the_catalogue_alone(home: Home) -> None:
    assert read_own_catalogue(home) == OwnCatalogue()
    assert read_own_catalogue(home).state() == ""
    home.gpus.write_text(f"{GPUS}\n{gpu()}\n")
    first = read_own_catalogue(home).state()
    home.gpus.write_text(f"{GPUS}\n{gpu()}\nnonsense\n")
    assert read_own_catalogue(home).state() == first
    home.gpus.write_text(f"{GPUS}\n{gpu(bandwidth_gb_s=900)}\n")
    assert read_own_catalogue(home).state() not in ("", first)


def test_own_gpus_have_a_row_of_each_column(home: Home) -> None:
    home.gpus.write_text(f"{GPUS}\n{gpu(usable_memory_gib='')}\n")
    with in_memory("gpus", "models") as connection:
        load_own(connection, read_own_catalogue(home))
        found = connection.execute(
            "SELECT usable_memory_gib, has_full_specs, confidence, source FROM main.gpus"
            " WHERE gpu_id = 'mine-48gb'"
        ).fetchone()
    assert found == (46.8, True, "own", "your own GPUs")


def test_a_workload_is_read_as_the_table_workloads_has_it(home: Home) -> None:
    home.workloads.write_text(
        "workload,model,method,tokens,examples,tokens_per_example,epochs,scenario\n"
        "a,phi-4,full,120M,50K,800,3,true\nb,phi-4,full,121M,50K,800,3,true\n"
    )
    found = read_own_catalogue(home)
    assert [(job.workload, job.tokens) for job in found.workloads] == [("a", 120e6)]
    ((_, problem),) = found.problems
    assert "line 3: skipped: tokens is 1.21e+08, but its examples and epochs give" in problem


def test_a_row_of_the_table_gpus_is_one_of_your_own_under_another_name(home: Home, sample_home: Home) -> None:
    """As docs/how-to/own-catalogue.md copies it, with columns that are not the user's to say."""
    query = (
        "SELECT * REPLACE ('mine-96gb' AS gpu_id, 96 AS memory_gb, 94 AS usable_memory_gib),"
        " 'L40S 96GB|L40S-X2' AS labels FROM gpus WHERE gpu_id = 'l40s'"
    )
    home.gpus.write_text(gpufare("sql", query, "--format", "csv", home=sample_home).stdout)
    found = read_own_catalogue(home)
    assert not found.problems
    (mine,) = found.gpus
    assert (mine.gpu_id, mine.memory_gb, mine.usable_memory_gib) == ("mine-96gb", 96, 94)
    assert found.labels() == {"l40s 96gb": "mine-96gb", "l40s-x2": "mine-96gb"}


def test_the_doctor_names_the_rows_that_cannot_be_used(home: Home) -> None:
    home.gpus.write_text(f"{GPUS}\n{gpu()}\n{gpu('bad', vendor='acme')}\n")
    said = gpufare("doctor", home=home).stdout
    assert "line 3: skipped: vendor: Input should be 'nvidia', 'amd' or 'intel'" in " ".join(said.split())


# ------------------------------------------------------------------ published


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, Any]]:
    """A home with a GPU and workloads of its own, beside lines that cannot be used, refreshed with few
    sources and few workloads of the catalogue."""
    folder = tmp_path_factory.mktemp("own")
    pages = folder / "pages"
    for source in ("ecb", "vultr"):
        shutil.copytree(PAGES / source, pages / source)
    home = Home(folder / "home")
    home.root.mkdir()
    lines = (GPUS, gpu("zz9", labels=f"Other| {LABEL.upper()}"), gpu("bad", vendor="acme"))
    home.gpus.write_text("\n".join(lines))
    home.workloads.write_text(
        f"{JOBS}support-bot,llama-3.1-8b,qlora,40M\nbad,nothing,qlora,40M\nlong-bot,phi-4,lora,1M\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "CATALOG_DIR", small_catalogue(folder / "catalog"))
        with PagesServer(pages) as server:
            report = refresh(
                home, day=DAY, sources=["ecb", "vultr"], pages=server.base_url, environment={}, now=NOW
            )
        assert report.published, report.failure()
        yield home, report


def test_own_workloads_are_ranked_with_the_others(published: tuple[Home, Any]) -> None:
    home, _ = published
    with reader(home.published) as connection:
        ranked = ask(
            connection,
            "SELECT DISTINCT workload FROM cheapest_gpu_per_workload"
            " WHERE workload IN ('support-bot', 'long-bot') ORDER BY 1",
        ).rows
        recorded = ask(
            connection, "SELECT count(*) > 0 FROM ranking_history WHERE workload = 'support-bot'"
        ).rows
        why_not = ask(
            connection, "SELECT count(*) > 0 FROM why_not WHERE model = 'phi-4' AND method = 'lora'"
        ).rows
    assert (ranked, recorded, why_not) == ([("long-bot",), ("support-bot",)], [(True,)], [(True,)])


def test_own_gpus_are_planned_and_marked(published: tuple[Home, Any]) -> None:
    home, _ = published
    with reader(home.published) as connection:
        ((confidence, plans),) = ask(
            connection,
            "SELECT any_value(g.confidence), count(*) FROM gpus AS g JOIN plans AS p USING (gpu_id)"
            " WHERE gpu_id = 'zz9' AND p.verdict = 'fits'",
        ).rows
    assert confidence == "own"
    assert plans > 0


OF_LABEL = "SELECT DISTINCT gpu_id, match_status, match_rule FROM offers WHERE raw_label = ?"


def test_offers_of_own_labels_are_of_own_gpus(published: tuple[Home, Any]) -> None:
    home, _ = published
    with reader(home.published) as connection:
        assert ask(connection, OF_LABEL, [LABEL]).rows == [("zz9", "matched", "label in your own gpus.csv")]
        (priced,) = ask(connection, "SELECT on_demand_provider FROM gpu_compare WHERE gpu_id = 'zz9'").rows
    assert priced == ("Vultr",)


@pytest.mark.slow
def test_rows_that_would_stop_a_publication_are_skipped(
    published: tuple[Home, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here by a check that forbids one of them. What the record said of its offers is then said again."""
    home, _ = published
    monkeypatch.setattr(paths, "CATALOG_DIR", home.root.parent / "catalog")
    monkeypatch.setattr(paths, "SQL_DIR", Path(shutil.copytree(paths.SQL_DIR, tmp_path / "sql")))
    check = "-- fail: there is a bot\nFROM main.workloads WHERE workload = 'support-bot'\n"
    (tmp_path / "sql" / "checks" / "no_bots.sql").write_text(check)
    later = Home(Path(shutil.copytree(home.root, tmp_path / "later")))
    report = build(tmp_path / "without.duckdb", later, DAY, NOW)
    said = [incident.line() for incident in report.incidents]
    assert any(
        line.startswith("models.csv, gpus.csv, workloads.csv: nothing of it can be used:")
        and "there is a bot" in line
        for line in said
    ), said
    with reader(tmp_path / "without.duckdb") as connection:
        assert ask(connection, "FROM workloads WHERE workload = 'support-bot'").rows == []
        ((gpu_id, status, _),) = ask(connection, OF_LABEL, [LABEL]).rows
    assert (gpu_id, status) == (None, "unknown")


def test_refresh_reports_unusable_rows(published: tuple[Home, Any]) -> None:
    home, report = published
    said = "\n".join(report.lines())
    assert "gpus.csv: line 3: skipped: vendor: Input should be 'nvidia', 'amd' or 'intel'" in said
    assert "workloads.csv: bad: skipped: model 'nothing' is not known" in said
    kinds = {incident.kind.value for incident in kept_incidents(home)}
    assert kinds == {"own_catalogue"}


def test_a_next_build_begins_where_this_one_ended(
    published: tuple[Home, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _ = published
    monkeypatch.setattr(paths, "CATALOG_DIR", home.root.parent / "catalog")
    kept = kept_file(home, read_own_catalogue(home))
    assert kept is not None
    assert kept_file(home, OwnCatalogue()) is None
    build(tmp_path / "again.duckdb", home, DAY, NOW + timedelta(hours=1))
    assert kept_file(home, read_own_catalogue(home)) == kept
