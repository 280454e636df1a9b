"""A model of the user's is asked about as soon as it is added, also in the demo's home."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import gpufare as python
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.model.given_models import model_of_file
from pipeline.questions.prices import _put_in_front
from pipeline.warehouse.query import reader
from tests.conftest import gpufare
from tests.model.test_own_models import config_file

JOB: dict[str, Any] = {"method": "lora", "tokens": 1e9, "gpus": 1}
OPTIONS = ("--method", "lora", "--tokens", "1B", "--gpus", "1")


@pytest.fixture
def demo(sample_home: Home, tmp_path: Path) -> Home:
    """The sample home as the demo leaves it: nothing refreshes it."""
    home = Home(tmp_path / "demo")
    home.root.mkdir()
    home.published.parent.symlink_to(sample_home.published.parent)
    home.demo.write_text("{}")
    return home


def test_an_added_model_is_known_at_once_to_every_question(demo: Home, tmp_path: Path) -> None:
    config, before = config_file(tmp_path, "mine.json"), demo.published.stat()
    added = gpufare("model", "add", str(config), home=demo).stdout
    (command,) = [line.partition(": ")[2] for line in added.splitlines() if ": gpufare cheapest" in line]
    suggested = gpufare(*shlex.split(command)[1:], home=demo)
    assert suggested.stdout.startswith("mine "), suggested.stderr
    assert f"for today's: unset {HOME_VARIABLE}; gpufare refresh" in suggested.stderr

    def rows(*words: str) -> list[dict[str, Any]]:
        answer = gpufare("cheapest", *words, *OPTIONS, "--format", "jsonl", home=demo).stdout
        return [json.loads(line) for line in answer.splitlines()]

    assert rows("--model", "mine") == rows("--config", str(config)) != []
    job = ("--model", "mine", *OPTIONS)
    for question in (("fit", *job[:4], "--gpu", "l4"), ("explain", *job), ("compare", "l4", "l40s", *job)):
        answer = gpufare(*question, home=demo)
        assert answer.returncode == 0, answer.stderr
    with python.open(demo.root) as prices:
        assert prices.cheapest(model="mine", **JOB)[0]["model"] == "mine"
        assert prices.explain(model="mine", **JOB)
        assert prices.fit(model="mine", method="lora", gpu="l4").fits
        assert prices.compare("l4", "l40s", model="mine", **JOB)
        assert "mine" in {row["model"] for row in prices.fits_on("l4")}
    assert demo.published.stat() == before
    assert "the nearest are mine;" in gpufare("cheapest", "--model", "mien", *OPTIONS, home=demo).stderr


def test_a_model_that_is_published_as_it_is_keeps_its_published_plans(
    sample_home: Home, tmp_path: Path
) -> None:
    """What was added is found as published: to add it again would fail, as its tables are there."""
    model, _ = model_of_file(config_file(tmp_path, "mine.json"))
    with reader(sample_home.published) as connection:
        for _ in range(2):
            _put_in_front(connection, {"mine": model}, [])
        edited = model.model_copy(update={"layers": 23})
        with pytest.raises(python.JobError, match="already exists"):
            _put_in_front(connection, {"mine": edited}, [])
