"""A user's own GPUs and workloads: kept in the home, published beside the catalogue's, never in its way."""

import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.catalog.own import OwnCatalogue, OwnGpu, read_own_catalogue
from pipeline.catalog.tables import catalog_rows
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents
from pipeline.refresh.refresh import refresh
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


def gpu(name: str = "mine-48gb", **changes: object) -> str:
    """Return a line of gpus.csv: the specifications of an L40S under another name."""
    (found,) = (row for row in catalog_rows("gpus.csv") if row["gpu_id"] == "l40s")
    cells = {**found, "gpu_id": name, "labels": ""} | changes
    cells |= {"source": "", "notes": ""}
    return ",".join(str(cells[column]) for column in COLUMNS)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home").mkdir()
    return Home(tmp_path / "home")


def test_gpus_that_cannot_be_are_named_and_the_others_are_read(home: Home) -> None:
    wrong: dict[str, dict[str, object]] = {
        "'l40s' is the name of a GPU of the catalogue, which is used": {"gpu_id": "l40s"},
        "'good' is the name of another row, which is used": {"gpu_id": "good"},
        "gpu_id: 'My GPU' is not a name: up to 80 lower-case letters, digits, dots, dashes and underscores, "
        "a letter or digit first": {"gpu_id": "My GPU"},
        "memory_gb: Input should be greater than 0": {"memory_gb": "-1"},
        "bandwidth_gb_s: Field required": {"bandwidth_gb_s": ""},
        "vendor: Input should be 'nvidia', 'amd' or 'intel'": {"vendor": "acme"},
        "nvlink_gb_s and nvlink_topology belong together: give both or neither": {"nvlink_gb_s": "600"},
        "usable_memory_gib is 90, of 48 GB": {"usable_memory_gib": "90"},
        "gemm_bf16_measured_tflops is 900, above bf16_dense_tflops": {"gemm_bf16_measured_tflops": "900"},
        "tdp_w: Input should be a finite number": {"tdp_w": "inf"},
    }
    lines = [gpu(f"bad-{n}", **change) for n, change in enumerate(wrong.values())]
    empty = "," * (len(COLUMNS) - 1)
    home.gpus.write_text("\n".join([GPUS, empty, gpu("good"), *lines, ""]))
    found = read_own_catalogue(home)
    assert [(row["gpu_id"], row["notes"]) for row in found.rows()["gpus"]] == [("good", None)]
    assert found.problems == [
        (home.gpus, f"{home.gpus}, line {line}: skipped: {problem}")
        for line, problem in enumerate(wrong, start=4)
    ]


def test_workloads_that_cannot_be_are_named_and_the_others_are_read(home: Home) -> None:
    wrong = [
        "llama-3.1-8b-lora-100m,llama-3.1-8b,lora,1M",
        "sft,llama-3.1-8b,sft,1M",
        "many,llama-3.1-8b,lora,many",
        "none,llama-3.1-8b,lora,",
        "less,llama-3.1-8b,lora,0.9",
        "llama,lama-3.1-8b,lora,1M",
        "other,nothing,lora,1M",
    ]
    problems = [
        "line 2: skipped: 'llama-3.1-8b-lora-100m' is the name of a workload of the catalogue, which is used",
        "line 3: skipped: method: Input should be 'full', 'lora', 'qlora' or 'pretrain'",
        "line 4: skipped: tokens: Value error, 'many' is not a number of tokens, such as 100M",
        "line 5: skipped: tokens: Field required",
        "line 6: skipped: tokens: Input should be greater than or equal to 1",
        "llama: skipped: model 'lama-3.1-8b' is not known: did you mean 'llama-3.1-8b'?",
        "other: skipped: model 'nothing' is not known",
    ]
    home.workloads.write_text("\n".join([JOBS.strip(), *wrong, "good,llama-3.1-8b,qlora,1", ""]))
    found = read_own_catalogue(home)
    assert [job.workload for job in found.workloads] == ["good"]
    assert found.problems == [(home.workloads, f"{home.workloads}, {problem}") for problem in problems]


def test_what_a_workload_leaves_open_is_what_a_question_leaves_open(home: Home) -> None:
    home.workloads.write_text(
        "workload,model,method,tokens,examples,tokens_per_example,epochs,seq_len,scenario\n"
        "a,llama-3.1-8b,qlora,120M,50K,800,3,,true\n"
        "b,llama-3.1-8b,full,,1M,8000,1,200000,\n"
        "c,phi-4,full,121M,50K,800,3,,true\n"
        "d,phi-4,full,1M,,,,0,\n"
    )
    found = read_own_catalogue(home)
    (row,) = found.rows()["workloads"]
    assert (row["tokens"], row["seq_len"], row["lora_rank"], row["max_gpus"]) == (120e6, 2048, 16, 8)
    assert (row["max_hours"], row["title"]) == (None, "a")
    wrong_sum, too_short, too_long = (problem for _, problem in found.problems)
    assert too_short.endswith("line 5: skipped: seq_len: Input should be greater than or equal to 1")
    assert "b: skipped: seq_len is 200000, and llama-3.1-8b takes at most 131072" in too_long
    assert "line 4: skipped: tokens is 1.21e+08, but its examples and epochs give" in wrong_sum


def test_an_empty_home_has_the_state_of_the_catalogue_alone(home: Home) -> None:
    assert read_own_catalogue(home) == OwnCatalogue()
    assert read_own_catalogue(home).state() == ""
    home.gpus.write_text(f"{GPUS}\n{gpu()}\n")
    first = read_own_catalogue(home).state()
    home.gpus.write_text(f"{GPUS}\n{gpu()}\nnonsense\n")
    assert read_own_catalogue(home).state() == first
    home.gpus.write_text(f"{GPUS}\n{gpu(bandwidth_gb_s=900)}\n")
    assert read_own_catalogue(home).state() not in ("", first)


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
    ours = gpu("zz9", labels=f"Other| {LABEL.upper()}", usable_memory_gib="")
    home.gpus.write_text("\n".join((GPUS, ours, gpu("bad", vendor="acme"))))
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


OF_LABEL = "SELECT DISTINCT gpu_id, match_status, match_rule FROM offers WHERE raw_label = ?"


def test_own_workloads_and_gpus_are_ranked_planned_and_priced_and_bad_rows_reported(
    published: tuple[Home, Any],
) -> None:
    home, report = published
    answers: dict[str, list[tuple[Any, ...]]] = {
        "SELECT DISTINCT workload FROM cheapest_gpu_per_workload WHERE workload LIKE '%-bot' ORDER BY 1": [
            ("long-bot",),
            ("support-bot",),
        ],
        "SELECT count(*) > 0 FROM ranking_history WHERE workload = 'support-bot'": [(True,)],
        "SELECT count(*) > 0 FROM why_not WHERE model = 'phi-4' AND method = 'lora'": [(True,)],
        "SELECT usable_memory_gib, has_full_specs, confidence, source FROM gpus WHERE gpu_id = 'zz9'": [
            (46.8, True, "own", "your own GPUs")
        ],
        "SELECT count(*) > 0 FROM plans WHERE gpu_id = 'zz9' AND verdict = 'fits'": [(True,)],
        "SELECT on_demand_provider FROM gpu_compare WHERE gpu_id = 'zz9'": [("Vultr",)],
    }
    with reader(home.published) as connection:
        assert {query: ask(connection, query).rows for query in answers} == answers
        assert ask(connection, OF_LABEL, [LABEL]).rows == [("zz9", "matched", "label in your own gpus.csv")]
    said = "\n".join(report.lines())
    assert "gpus.csv: line 3: skipped: vendor: Input should be 'nvidia', 'amd' or 'intel'" in said
    assert "workloads.csv: bad: skipped: model 'nothing' is not known" in said
    assert {incident.kind.value for incident in kept_incidents(home)} == {"own_catalogue"}
    doctor = " ".join(gpufare("doctor", home=home).stdout.split())
    assert "line 3: skipped: vendor: Input should be 'nvidia', 'amd' or 'intel'" in doctor


def test_a_row_of_the_table_gpus_is_one_of_your_own_under_another_name(
    home: Home, published: tuple[Home, Any]
) -> None:
    """As docs/how-to/own-catalogue.md copies it, with columns that are not the user's to say."""
    query = (
        "SELECT * REPLACE ('mine-96gb' AS gpu_id, 96 AS memory_gb, 94 AS usable_memory_gib),"
        " 'L40S 96GB|L40S-X2' AS labels FROM gpus WHERE gpu_id = 'l40s'"
    )
    home.gpus.write_text(gpufare("sql", query, "--format", "csv", home=published[0]).stdout)
    found = read_own_catalogue(home)
    assert not found.problems
    (mine,) = found.gpus
    assert (mine.gpu_id, mine.memory_gb, mine.usable_memory_gib) == ("mine-96gb", 96, 94)
    assert found.labels() == {"l40s 96gb": "mine-96gb", "l40s-x2": "mine-96gb"}
