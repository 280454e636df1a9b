"""A run of the user's corrects every answer about similar jobs, from when it is added until it is removed."""

import json
from pathlib import Path
from typing import Any

import pytest

import gpufare as python
from pipeline.assistant.jobs import fit as assistant_fit
from pipeline.assistant.published import Published
from pipeline.home.paths import Home
from tests.conftest import gpufare

RUN = (
    "run", "add", "--model", "llama-3.1-8b", "--gpu", "rtx-4090", "--method", "qlora", "--framework", "liger",
    "--seq-len", "2048", "--micro-batch", "2", "--checkpointing", "none", "--set", "quantization=nf4dq",
    "--set", "optimizer=adamw_fused",
)  # fmt: skip
JOB: dict[str, Any] = {"model": "llama-3.1-8b", "method": "qlora"}
OPTIONS = ("--model", "llama-3.1-8b", "--method", "qlora")


@pytest.fixture
def home(sample_home: Home, tmp_path: Path) -> Home:
    """The sample prices, with room for runs of one's own."""
    home = Home(tmp_path / "home")
    home.root.mkdir()
    home.published.parent.symlink_to(sample_home.published.parent)
    return home


def fitted(home: Home) -> dict[str, Any]:
    with python.open(home.root) as prices:
        return prices.fit(gpu="rtx-4090", **JOB).plan


def on_4090(home: Home, *words: str) -> dict[str, Any]:
    answer = gpufare(
        "cheapest", *OPTIONS, "--tokens", "100M", "--gpu", "rtx-4090", *words, "--format", "json", home=home
    )
    row: dict[str, Any] = json.loads(answer.stdout)[0]
    return row


def test_a_run_corrects_every_face_at_once_until_it_is_removed(home: Home) -> None:
    before, ranked = fitted(home), on_4090(home)
    published, file = Published(home), home.published.stat()
    assert assistant_fit(published, {**JOB, "gpu": "rtx-4090"}).data["evidence"] == before["evidence"]
    slow = before["tokens_per_second"] / 2
    added = gpufare(*RUN, "--tokens-per-second", str(slow), "--peak-gib", "21", home=home)
    assert added.stdout.startswith(f"added own-1 to {home.own_runs}\n"), added.stderr
    assert "CAREFUL: that is outside the estimate's band" in added.stdout

    after = fitted(home)
    assert (after["evidence"], after["verdict"]) == ("own", "fits")
    assert slow < after["tokens_per_second"] < before["tokens_per_second"]
    spread = after["tokens_per_second_high"] / after["tokens_per_second_low"]
    assert spread < before["tokens_per_second_high"] / before["tokens_per_second_low"]
    sentence = "tokens per second corrected x 0."
    with python.open(home.root) as prices:
        fit = prices.fit(gpu="rtx-4090", **JOB)
        assert any(sentence in line for line in fit.sentences())
        parts = {row["part"]: row["gib"] for row in fit.memory.dicts()}
        assert (
            sum(gib for name, gib in parts.items() if name not in ("peak memory", "margin", "minimum needed"))
            == (parts["peak memory"])
        )
        answer = prices.cheapest(tokens=100e6, gpu="rtx-4090", limit=1, **JOB)
        assert answer[0]["evidence"] == "own"
        assert any(sentence in note for note in answer.notes)
    row = on_4090(home)
    assert row["hours"] > ranked["hours"]
    assert row["tokens_per_second"] == after["tokens_per_second"]
    assert on_4090(home, "--evidence", "own")["evidence"] == "own"
    told = assistant_fit(published, {**JOB, "gpu": "rtx-4090"})
    assert told.data["evidence"] == "own"
    assert any(sentence in line for line in told.lines)

    listed = json.loads(gpufare("run", "list", "--format", "json", home=home).stdout)
    assert [(run["run_id"], run["corrects"]) for run in listed] == [("own-1", "yes")]
    assert listed[0]["speed_ratio"] == pytest.approx(
        slow / listed[0]["tokens_per_second_per_gpu_estimated"], abs=0.001
    )
    assert gpufare("run", "remove", "own-1", home=home).returncode == 0
    assert fitted(home) == before
    assert on_4090(home) == ranked
    published.close()
    assert home.published.stat() == file


def test_a_run_that_ran_out_of_memory_raises_what_jobs_like_it_need(home: Home) -> None:
    before = fitted(home)
    small = ("--seq-len", "512", "--micro-batch", "1", "--checkpointing", "full", "--out-of-memory")
    added = gpufare(*RUN[: RUN.index("--seq-len")], *small, home=home)
    assert " GiB of its card, but the estimate is " in added.stdout
    assert "GiB, which is raised. Check the settings, and that nothing else used the card." in added.stdout
    assert "cheapest, explain, fit" in added.stdout
    after = fitted(home)
    assert after["least_needed_gib"] > 1.5 * before["least_needed_gib"]
    assert after["fit_probability"] < before["fit_probability"]
    (run,) = json.loads(gpufare("run", "list", "--format", "json", home=home).stdout)
    assert (run["memory_gib_measured"], run["corrects"]) == (after["usable_memory_gib"], "where too low")
    assert gpufare("run", "remove", "own-1", home=home).returncode == 0
    assert fitted(home) == before


def test_a_run_that_ran_out_of_memory_as_expected_is_listed_so(home: Home) -> None:
    assert "GiB by the estimate, as expected" in gpufare(*RUN, "--out-of-memory", home=home).stdout
    (run,) = json.loads(gpufare("run", "list", "--format", "json", home=home).stdout)
    assert run["corrects"] == "nothing: as expected"


def test_other_cards_methods_and_sizes_keep_the_models_answers(home: Home) -> None:
    def others() -> list[Any]:
        with python.open(home.root) as prices:
            return [
                prices.fit(model=model, method=method, gpu=gpu).plan
                for model, method, gpu in (
                    ("llama-3.1-8b", "full", "h200-sxm-141gb"), ("llama-3.1-70b", "qlora", "h100-sxm-80gb"),
                )
            ]  # fmt: skip

    before = others()
    assert gpufare(*RUN, "--tokens-per-second", "2000", "--peak-gib", "20", home=home).returncode == 0
    assert others() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--tokens-per-second", "100"),
            "CAREFUL: that is far off, and corrects nothing. Check that it counts",
        ),
        (
            ("--tokens-per-second", "3600", "--gpus", "8"),
            "it may be the value of one card, given as the total of all 8; it corrects nothing",
        ),
        (("--peak-gib", "900"), "CAREFUL: that is far off, and corrects nothing. Check that --peak-gib"),
        (("--out-of-memory",), "GiB by the estimate, as expected"),
        (
            ("--out-of-memory", "--gpu", "h200-sxm-141gb"),
            "that is far off, and corrects nothing. Check the settings, and that nothing else used the card.",
        ),
    ],
)
def test_a_doubtful_run_is_added_with_what_to_check(words: tuple[str, ...], said: str, home: Home) -> None:
    added = gpufare(*RUN, *words, home=home)
    assert added.returncode == 0, added.stderr
    assert said in added.stdout
    assert added.stdout.startswith("added own-1")
    assert fitted(home)["evidence"] != "own"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "give --tokens-per-second or --peak-gib or both, or else --out-of-memory"),
        (("--out-of-memory", "--peak-gib", "3"), "or else --out-of-memory"),
        (("--tokens-per-second", "9", "--tokens-per-second-per-gpu", "9"), "not both"),
        (("--peak-gib", "-3"), "not added: measured_memory_gib: -3.0 is not a positive number"),
        (("--peak-gib", "9", "--set", "colour=red"), "--set colour=red: give COLUMN=VALUE with one of"),
        (("--peak-gib", "9", "--set", "seq_len=9"), "seq_len is given by an option"),
        (("--peak-gib", "9", "--set", "sharding=all"), "not added: sharding: 'all' is not one of"),
        (
            ("--peak-gib", "9", "--model", "llama-3.3-8b"),
            "not added: model 'llama-3.3-8b' is not known: add it with gpufare model add; the nearest names",
        ),
        (("--peak-gib", "9", "--gpu", "abacus"), "not added: gpu 'abacus' is not one card of the catalogue"),
        (
            ("--peak-gib", "9", "--framework", "abacus"),
            "--framework abacus is not known: give one of hf, liger",
        ),
    ],
)
def test_a_wrong_run_is_not_added(words: tuple[str, ...], problem: str, home: Home) -> None:
    refused = gpufare(*RUN, *words, home=home)
    assert refused.returncode != 0
    assert problem in refused.stderr
    assert not home.own_runs.exists()


def test_an_unknown_run_cannot_be_removed(home: Home) -> None:
    assert "no run own-1" in gpufare("run", "remove", "own-1", home=home).stderr
    gpufare(*RUN, "--peak-gib", "20", home=home)
    assert "no run own-7" in (error := gpufare("run", "remove", "own-7", home=home).stderr)
    assert "there are own-1" in error


def test_a_framework_gives_its_stack_and_loss_kernel(home: Home) -> None:
    options = [word for word in RUN if word not in ("--framework", "liger")]
    gpufare(*options, "--framework", "Unsloth", "--peak-gib", "20", home=home)
    heading, run = (line.split(",") for line in home.own_runs.read_text().splitlines())
    values = dict(zip(heading, run, strict=True))
    assert (values["stack"], values["loss_kernel"], values["run_id"]) == ("foak", "liger", "own-1")
