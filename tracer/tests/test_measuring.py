"""`gpufare measure`: the card, the row, and the estimate beside it."""

import csv
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gpufare_tracer.measuring import card
from gpufare_tracer.measuring.measure import MeasureError, _given_model, check, measure
from gpufare_tracer.measuring.report import GIB, Report, report
from gpufare_tracer.measuring.result import Measured, PhasePeak, Request
from gpufare_tracer.recipes import Recipe, read_recipes
from gpufare_tracer.result import TraceShape
from gpufare_tracer.settings import run_settings
from gpufare_tracer.timeline import Phase
from pipeline.cli.main import main
from pipeline.home import paths
from pipeline.home.csv_rows import row_text
from pipeline.home.paths import Home
from pipeline.model.estimate import Estimator, estimate_file
from pipeline.model.own_runs import MORE_COLUMNS, catalogue_columns, read_own_runs

NOW = datetime(2026, 8, 22, 12, 30, tzinfo=UTC)
UUID = "5f1c8a3e-0001"
RTX_4090 = "NVIDIA GeForce RTX 4090"


@pytest.fixture(scope="module")
def estimator() -> Iterator[Estimator]:
    made = Estimator()
    yield made
    made.close()


@pytest.fixture
def home() -> Home:
    return paths.home()


def request_of(recipe: str = "hf-qlora", **shape: Any) -> Request:
    values = {"model": "llama-3.1-8b", "micro_batch": 2, "seq_len": 2048} | shape
    return Request(recipe=read_recipes()[recipe], shape=TraceShape.model_validate(values))


def seen(**changes: Any) -> Measured:
    """A run of 12 steps on an RTX 4090."""
    values: dict[str, Any] = {
        "device": RTX_4090, "card_uuid": UUID, "memory_bytes": int(23.6 * GIB),
        "versions": {"torch": "2.13.0"},
        "phases": (PhasePeak(phase=Phase.BACKWARD, allocated_bytes=11 * GIB, reserved_bytes=13 * GIB),),
        "allocated_bytes": 11 * GIB, "reserved_bytes": 13 * GIB, "used_at_end_bytes": 14 * GIB,
        "step_seconds": (1.9, *(2.0,) * 8, 2.2, 2.4, 2.6),
    }  # fmt: skip
    return Measured.model_validate(values | changes)


def card_of(**changes: Any) -> dict[str, card.Card]:
    values: dict[str, Any] = {
        "uuid": UUID, "name": RTX_4090, "used_mib": 512.0, "power_limit_watts": 450.0,
        "default_power_limit_watts": 450.0, "is_partitioned": False, "processes": 0,
    }  # fmt: skip
    return {UUID: card.Card(**values | changes)}


def reported(estimator: Estimator, home: Home, measured: Measured, **changes: Any) -> Report:
    request = changes.pop("request", None) or request_of()
    before = changes.pop("before", card_of())
    return report(request, measured, before, estimator, home, NOW, **changes)


def test_the_row_is_in_the_layout_of_the_catalogue_and_is_estimated_as_it_was_beside_the_run(
    estimator: Estimator, home: Home, tmp_path: Path
) -> None:
    done = reported(estimator, home, seen())
    assert done.not_ready == []
    columns = catalogue_columns()
    (tmp_path / "row.csv").write_text(row_text(columns) + row_text(done.row[name] for name in columns))
    with (tmp_path / "row.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert list(row) == list(columns)
    assert (row["gpu"], row["model"], row["method"]) == ("rtx-4090", "llama-3.1-8b", "qlora")
    assert (row["lora_dropout"], row["lora_rank"], row["optimizer"]) == ("0.1", "64", "paged32")
    assert (row["memory_metric"], row["measured_memory_gib"], row["out_of_memory"]) == ("alloc", "11", "0")
    assert row["measured_tokens_per_second_per_gpu"] == "2048"
    (answer,) = estimate_file(estimator, tmp_path / "row.csv")
    assert answer["error"] == ""
    memory, speed = done.comparisons
    assert f"{memory.estimated:.4f}" == answer["memory_gib"]
    assert f"{speed.estimated:.4f}" == answer["tokens_per_second_per_gpu"]


@pytest.mark.parametrize("recipe", ["hf-full", "hf-lora", "hf-qlora", "hf-lora-liger"])
def test_every_setting_of_a_recipe_has_its_column(recipe: str) -> None:
    settings = run_settings(read_recipes()[recipe], TraceShape(model="llama-3.1-8b"), "rtx-4090")
    assert set(settings) <= set(catalogue_columns())


def test_the_median_step_gives_the_speed_and_quartiles_its_spread(estimator: Estimator, home: Home) -> None:
    done = reported(estimator, home, seen(step_seconds=(1.0, 2.0, 3.0, 4.0, 100.0)))
    assert done.step_seconds == 3.0
    assert done.quartiles == (2.0, 4.0)
    assert done.tokens_per_second == pytest.approx(2 * 2048 / 3.0)


def test_micro_batches_that_accumulate_count_in_the_speed(estimator: Estimator, home: Home) -> None:
    request = request_of()
    accumulating = request.recipe.model_copy(update={"gradient_accumulation": True})
    request = request.model_copy(update={"recipe": accumulating})
    done = reported(estimator, home, seen(step_seconds=(2.0,)), request=request)
    assert done.tokens_per_second == 2 * 2 * 2048 / 2.0
    assert done.row["grad_accum"] == "2"
    assert done.quartiles is None


def test_inside_is_within_the_band(estimator: Estimator, home: Home) -> None:
    memory = reported(estimator, home, seen()).comparisons[0]
    for measured, is_inside in ((memory.low, True), (memory.high * 1.01, False), (memory.low * 0.99, False)):
        done = reported(estimator, home, seen(allocated_bytes=int(measured * GIB) + 1))
        assert done.comparisons[0].is_inside is is_inside


def test_the_memory_of_the_process_is_what_came_into_use_with_it(estimator: Estimator, home: Home) -> None:
    assert reported(estimator, home, seen()).process_gib == 13.5
    assert reported(estimator, home, seen(), before={}).process_gib is None


@pytest.mark.parametrize(
    ("device", "memory_gib", "gpu", "why"),
    [
        ("NVIDIA H100 80GB HBM3", 79.1, "h100-sxm-80gb", ""),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 19.6, "unknown", "is a part of a card"),
        ("NVIDIA GeForce RTX 4060 Ti", 15.7, "unknown", "not one card of the catalogue: name it with --gpu"),
        ("Gizmo 9000\x1b[2J", 15.7, "unknown", "gpu 'Gizmo 9000�[2J' is not one card"),
    ],
)
def test_a_card_is_its_name_and_its_memory(
    device: str, memory_gib: float, gpu: str, why: str, estimator: Estimator, home: Home
) -> None:
    done = reported(estimator, home, seen(device=device, memory_bytes=int(memory_gib * GIB)), before={})
    assert (done.gpu, done.row["gpu"]) == (gpu, gpu)
    assert why in "; ".join(done.not_ready)
    assert bool(done.not_ready) == (gpu == "unknown") == (not done.comparisons)


def test_card_with_an_ambiguous_name_takes_the_given_id(estimator: Estimator, home: Home) -> None:
    measured = seen(device="NVIDIA GeForce RTX 4060 Ti", memory_bytes=int(15.6 * GIB))
    done = reported(estimator, home, measured, gpu="rtx-4060-ti-16gb")
    assert (done.gpu, done.not_ready) == ("rtx-4060-ti-16gb", [])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"power_limit_watts": 300.0}, "power limited to 300 of 450 W"),
        ({"is_partitioned": True}, "the card is partitioned (MIG)"),
        ({"processes": 2, "used_mib": 8192.0}, "2 processes on the card before the run (8.0 GiB in use)"),
        ({"used_mib": 8192.0}, "8.0 GiB of the card in use before the run"),
    ],
)
def test_a_limited_or_shared_card_is_not_a_row_for_the_catalogue(
    changes: dict[str, Any], why: str, estimator: Estimator, home: Home
) -> None:
    done = reported(estimator, home, seen(), before=card_of(**changes))
    assert done.not_ready == [why]
    (kept,) = read_own_runs(home).runs
    assert why == kept.values["not_ready"]


def test_running_out_of_memory_is_a_row(estimator: Estimator, home: Home) -> None:
    died = seen(out_of_memory="in the backward phase of a step: CUDA out of memory", step_seconds=())
    done = reported(estimator, home, died)
    assert (done.row["out_of_memory"], done.row["measured_memory_gib"]) == ("1", "")
    assert done.row["measured_tokens_per_second_per_gpu"] == ""
    assert [each.is_inside for each in done.comparisons] == [None, None]
    assert done.not_ready == []
    assert "CUDA out of memory" in done.row["note"]
    assert done.is_to_fit is True, "one more run that the model is wrong about"


def test_a_model_that_is_cut_is_compared_at_its_depth_and_is_not_a_row(
    estimator: Estimator, home: Home
) -> None:
    whole = reported(estimator, home, seen()).comparisons[0].estimated
    assert len(read_own_runs(home).runs) == 1
    half, all_layers = (
        reported(estimator, home, seen(), request=request_of(layers=layers)) for layers in (16, 32)
    )
    assert (half.own_runs, half.not_ready) == (None, ["the model is cut to 16 layers"])
    assert half.not_kept == "a cut model is no row"
    (weights,) = estimator.connection.execute(
        "SELECT params_linear FROM main.models WHERE model = 'llama-3.1-8b'"
    ).fetchone() or (0,)
    saved_gib = weights / 2 * 0.5 / GIB  # half of the layers, half a byte each
    assert saved_gib < whole - half.comparisons[0].estimated < 3 * saved_gib
    assert all_layers.comparisons[0].estimated == pytest.approx(whole, rel=0.02)
    assert len(read_own_runs(home).runs) == 1


LLAMA_1B = {
    "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
    "tie_word_embeddings": True,
}  # fmt: skip


def test_the_model_of_a_config_is_estimated_by_its_shape(estimator: Estimator, home: Home) -> None:
    known = reported(estimator, home, seen(), request=request_of(model="llama-3.2-1b"))
    request = request_of(model="llama-3-70b", config=LLAMA_1B)  # the file's name says nothing
    given, problem = _given_model(request)
    assert problem == ""
    mine = Estimator(given)
    done = reported(mine, home, seen(), request=request)
    cut = reported(mine, home, seen(), request=request_of(model="mine", config=LLAMA_1B, layers=8))
    mine.close()
    assert done.comparisons[0].estimated == pytest.approx(known.comparisons[0].estimated, rel=0.01)
    assert done.not_ready == ["the model is not one of the catalogue"]
    assert cut.comparisons[0].estimated < done.comparisons[0].estimated


def test_a_config_whose_shape_is_not_known_has_no_estimate(estimator: Estimator, home: Home) -> None:
    request = request_of(model="mine", config={"model_type": "gizmo", "hidden_size": 64})
    given, problem = _given_model(request)
    assert given is None
    assert "model_type 'gizmo' is not one whose layers are known" in problem
    done = reported(estimator, home, seen(), request=request)
    assert (done.comparisons, done.no_estimate) == ((), "the shape of mine is not known")


def test_what_was_measured_is_not_lost_where_it_cannot_be_kept(estimator: Estimator, home: Home) -> None:
    home.root.write_text("a file in place of the folder")
    done = reported(estimator, home, seen())
    assert done.comparisons
    assert (done.own_runs, str(home.own_runs) in done.not_kept) == (None, True)


def test_a_run_on_the_cpu_has_no_estimate_and_is_kept_as_not_ready(estimator: Estimator, home: Home) -> None:
    request = request_of().model_copy(update={"on_cpu": True})
    measured = Measured(device="cpu", step_seconds=(1.0,))
    done = reported(estimator, home, measured, request=request, before={})
    assert (done.row["gpu"], done.row["not_ready"]) == ("unknown", "the steps ran on the CPU")
    assert done.no_estimate == "the model is of GPUs"


def test_own_earlier_runs_correct_the_estimate_beside_it(estimator: Estimator, home: Home) -> None:
    first = reported(estimator, home, seen())
    assert first.corrections == ""
    second = reported(estimator, home, seen())
    memory = second.comparisons[0]
    assert memory.estimated == first.comparisons[0].estimated
    assert memory.corrected == pytest.approx(
        memory.estimated * (11 / memory.estimated) ** (1 / 1.7), rel=1e-3
    )
    assert "from 1 run of yours" in second.corrections


def refused(**recipe: Any) -> str:
    mine = Recipe.model_validate({"name": "mine", "framework": "transformers", **recipe})
    with pytest.raises(MeasureError) as error:
        check(Request(recipe=mine, shape=TraceShape(model="llama-3.1-8b"), on_cpu=True))
    return str(error.value)


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        ({"kernels": "unsloth"}, "(kernels=unsloth)"),
        ({"method": "qlora", "quantization": "gptq"}, "(quantization=gptq)"),
        ({"sharding": "ddp", "gpu_count": 2}, "(sharding=ddp)"),
        ({"kernels": "liger"}, "Liger's kernels, which need a GPU: with --cpu, choose --recipe hf-lora"),
        ({"optimizer": "paged_adamw8bit"}, "with --cpu, add --set optimizer=adamw_fused"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_way_out(recipe: dict[str, Any], why: str) -> None:
    assert why in refused(**recipe)


def test_a_wrong_gpu_is_refused_before_anything_runs(home: Home) -> None:
    with pytest.raises(MeasureError, match="--gpu: gpu 'rtx-9999' is not one card of the catalogue"):
        measure(request_of(), home, NOW, gpu="rtx-9999")


def command(*arguments: str) -> str:
    answer = CliRunner().invoke(main, ["measure", *arguments])
    assert answer.exit_code in (1, 2), answer.output
    assert answer.stderr.count("\n") == 1, "one line"
    return answer.stderr


@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_a_method_on_the_cpu_is_a_recipe_that_runs_there(method: str) -> None:
    """The checks of the recipe come before that of the card."""
    said = command("--model", "llama-3.1-8b", "--method", method, "--cpu", "--gpu", "rtx-9999")
    assert "rtx-9999" in said


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--method", "lora"), "give either --model or --config"),
        (("--model", "llama-3.1-8b"), "give either --method or --recipe"),
        (
            ("--model", "llama-3.1-8b", "--method", "lora", "--recipe", "hf-lora"),
            "give either --method or --recipe",
        ),
        (("--model", "llama-3.1-8b", "--recipe", "mine"), "--recipe 'mine' is none of"),
        (("--model", "llama-9", "--recipe", "hf-lora"), "model 'llama-9' is not in catalog/models.csv"),
    ],
)
def test_wrong_options_name_the_problem(arguments: tuple[str, ...], why: str) -> None:
    assert why in command(*arguments)


LISTED = f"GPU-{UUID}, {RTX_4090}, 312, 450.00, 450.00, [N/A]\n"


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of that name, first on the path; what it prints is in two files beside it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\ncase "$1" in *compute-apps*) cat "${0%/*}/processes";; *) cat "${0%/*}/cards";; esac\n'
    )
    program.chmod(0o755)
    (folder / "processes").write_text("")
    (folder / "cards").write_text(LISTED)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_nvidia_smi_reports_other_processes_and_power_limits(nvidia_smi: Path) -> None:
    found = card.cards()[UUID]
    assert (found.used_mib, found.others, found.power, found.is_partitioned) == (312.0, "", "", False)
    (nvidia_smi / "processes").write_text(f"GPU-{UUID}\nGPU-another\n")
    (nvidia_smi / "cards").write_text(
        f"GPU-{UUID}, NVIDIA A100-SXM4-40GB, 5312, 250.00, 400.00, Enabled\n"
        "GPU-another, Tesla T4, 3, [N/A], [N/A], [N/A]\n"
    )
    found = card.cards()[UUID]
    assert found.others == "a process on the card before the run (5.2 GiB in use)"
    assert (found.power, found.is_partitioned) == ("power limited to 250 of 400 W", True)
    assert (card.cards()["another"].power, card.cards()["another"].processes) == ("", 1)


@pytest.mark.parametrize("listed", ["NVIDIA-SMI has failed\n", f"GPU-{UUID}, 1\n"])
def test_unknown_output_of_nvidia_smi_is_refused(nvidia_smi: Path, listed: str) -> None:
    (nvidia_smi / "cards").write_text(listed)
    with pytest.raises(card.NoCardsError, match="nvidia-smi answered with other columns"):
        card.cards()


def test_failing_or_missing_nvidia_smi_is_an_error(nvidia_smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (nvidia_smi / "nvidia-smi").write_text("#!/bin/sh\necho 'No devices were found'; exit 6\n")
    with pytest.raises(card.NoCardsError, match=r"did not answer \(No devices were found\)"):
        card.cards()
    monkeypatch.setenv("PATH", str(nvidia_smi / "nowhere"))
    with pytest.raises(card.NoCardsError, match=r"did not answer \(FileNotFoundError\)"):
        card.cards()


def test_json_names_the_file_of_the_kept_run(estimator: Estimator, home: Home) -> None:
    from gpufare_tracer.measuring.commands import _as_json

    said = json.loads(json.dumps(_as_json(reported(estimator, home, seen()))))
    assert list(said["row"]) == list(catalogue_columns())
    assert said["own_runs"] == str(home.own_runs)
    (kept,) = read_own_runs(home).runs
    assert {name: kept.values[name] for name in catalogue_columns()} == said["row"]
    assert set(kept.values) == {*catalogue_columns(), *MORE_COLUMNS}
    assert kept.values["process_gib"] == "13.5"
    assert kept.values["reserved_gib"] == "13"


def test_people_see_the_estimate_beside_what_was_measured(
    estimator: Estimator, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpufare_tracer.measuring.commands import _show

    _show(reported(estimator, home, seen(), before=card_of(power_limit_watts=300.0)))
    shown = capsys.readouterr().out
    assert "hf-qlora on llama-3.1-8b, 2 x 2048 tokens, on NVIDIA GeForce RTX 4090 (rtx-4090)" in shown
    assert re.search(r"^backward phase +11\.000 +13\.000", shown, re.MULTILINE)
    assert re.search(r"^all steps +11\.000 +13\.000 +13\.500", shown, re.MULTILINE)
    assert "half of them within 2.0000 to 2.0500 s, 2,048.0 tokens per second" in shown
    assert re.search(r"^peak allocated, GiB +11\.0 +\d+\.\d ", shown, re.MULTILINE)
    assert "not ready for the catalogue: power limited to 300 of 450 W" in shown
    assert f"added to {home.own_runs}" in shown
