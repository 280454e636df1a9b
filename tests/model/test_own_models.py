"""A user's own models: from a config.json by path or hub id, in the home, beside the catalogue's."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.catalog.own import OwnModel, read_own_catalogue
from pipeline.home.paths import Home
from pipeline.model.architectures import ConfigError, shape_of
from pipeline.model.given_models import MAX_BYTES
from pipeline.model.hub import fetch_config, is_hub_id
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.load import load_own
from tests.conftest import gpufare

CONFIG: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "vocab_size": 32000,
    "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 4,
}  # fmt: skip
COLUMNS = tuple(OwnModel.model_fields)
HEADER = ",".join(COLUMNS)


def row(model: str, **changes: object) -> str:
    values: dict[str, object] = {
        "model": model, "layers": 24, "hidden": 2048, "intermediate": 8192, "gated_mlp": 1, "heads": 16,
        "kv_heads": 4, "head_dim": 128, "vocab": 32000, "tied_embeddings": 0, "experts": 1,
        "experts_active": 1,
    } | changes  # fmt: skip
    return ",".join(str(values.get(name, "")) for name in COLUMNS)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root)


def config_file(tmp_path: Path, name: str = "mine-1b.json", **changes: object) -> Path:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(CONFIG | changes))
    return file


def runs_file(tmp_path: Path, *models: str) -> Path:
    file = tmp_path / "runs.csv"
    file.write_text("run_id,model,gpu,method\n" + "".join(f"{m},{m},l4,lora\n" for m in models))
    return file


def estimated(*arguments: str, home: Home) -> tuple[dict[str, dict[str, str]], str]:
    done = gpufare("estimate", *arguments, home=home)
    assert done.returncode == 0, done.stderr
    return {each["run_id"]: each for each in csv.DictReader(done.stdout.splitlines())}, done.stderr


def test_a_model_is_added_and_estimated(tmp_path: Path, home: Home) -> None:
    added = gpufare("model", "add", str(config_file(tmp_path)), home=home)
    assert "added mine-1b: 1.59B parameters, 1.59B active, 24 layers" in added.stdout, added.stderr
    again = gpufare("model", "add", str(config_file(tmp_path)), home=home)
    assert again.returncode == 1
    assert "remove its line" in again.stderr
    answers, _ = estimated(str(runs_file(tmp_path, "mine-1b")), home=home)
    assert answers["mine-1b"]["error"] == ""
    assert "extrapolated" not in answers["mine-1b"]["assumptions"]


def test_a_config_is_the_model_of_rows_that_name_none(tmp_path: Path, home: Home) -> None:
    config = config_file(tmp_path, "my-model/config.json", vision_config={"depth": 3})
    file = tmp_path / "runs.csv"
    file.write_text("run_id,model,gpu,method\nmine,,l4,lora\nnamed,llama-3.2-1b,l4,lora\n")
    answers, said = estimated(str(file), "--config", str(config), home=home)
    assert not answers["mine"]["error"]
    assert not answers["named"]["error"]
    assert answers["mine"]["memory_gib"] != answers["named"]["memory_gib"]
    assert "its vision tower is skipped" in said
    refused = gpufare(
        "estimate", str(file), "--config", str(config_file(tmp_path, model_type="bert")), home=home
    )
    assert refused.returncode == 1
    assert "model_type 'bert'" in refused.stderr


def test_names_of_the_catalogue_stay_its_own_and_a_file_of_fewer_columns_still_loads(home: Home) -> None:
    """Columns that may be empty may be lacking."""
    kept = [name for name in COLUMNS if not name.startswith("extra")]
    rows = [dict(zip(COLUMNS, row(model).split(","), strict=True)) for model in ("llama-3-8b", "old")]
    lines = [",".join(kept), *(",".join(values[name] for name in kept) for values in rows)]
    home.models.write_text("\n".join([*lines, ""]))
    with in_memory("models") as connection:
        own = read_own_catalogue(home)
        load_own(connection, own)
        found = connection.execute(
            "SELECT layers, params_total FROM main.models WHERE model IN ('llama-3-8b', 'old') ORDER BY model"
        ).fetchall()
    ((_, problem),) = own.problems
    assert "'llama-3-8b' is the name of a model of the catalogue, which is used" in problem
    assert found == [(32, 8_030_261_248), (24, 1_590_790_144)]


BAD_ROWS = (
    (row("Bad Name"), "model: 'Bad Name' is not a name: up to 80 lower-case letters"),
    (row("bad", layers=0), "layers is 0"), (row("bad", hidden=1 << 30), "hidden is"),
    (row("bad", layers="many"), "layers: Input should be a valid integer"),
    (row("bad", heads=""), "heads: Field required"), (row("bad", gated_mlp=3), "gated_mlp is 3"),
    (row("bad", experts=4, experts_active=8), "experts_active is 8"),
    (row("bad", linear_attention_layers=99), "linear_attention_layers is 99"),
    (row("bad", extra_linear_params=-(1 << 60)), "parameters"),
    *((row("bad", head_dim=size), f"head_dim is {size}, not from 8 to 1024") for size in (7, 1025)),
    (row("bad") + ",more", "values for"), (row("bad").rpartition(",")[0], "values for"),
    (row("good"), "'good' is the name of another row"), (row("later", layers=0), "layers is 0"),
)  # fmt: skip


def test_a_bad_row_is_named_and_the_others_are_read(home: Home) -> None:
    """Of rows with one name, the first good one is used."""
    bad = [line for line, _ in BAD_ROWS]
    home.models.write_text("\n".join([HEADER, row("good"), *bad, row("later"), ""]))
    found = read_own_catalogue(home)
    assert [model.model for model in found.models] == ["good", "later"]
    assert len(found.problems) == len(BAD_ROWS)
    for number, ((_, words), (_, problem)) in enumerate(zip(BAD_ROWS, found.problems, strict=True), 3):
        assert f"line {number}: skipped" in problem
        assert words in problem


DAMAGED_FILES = (
    (b"name\nx\n", "no column model"), (b"x" * (MAX_BYTES + 1), "larger than"),
    (HEADER.encode() + b",surprise\n", "has a column 'surprise', which is none"),
    (HEADER.encode() + b",model\n", "the column 'model' more than once"),
    (b'"' + HEADER.encode() + b"\n", "line 1: a quote is not"),
    (b"\xff\xfe\x00", "models.csv is UTF-16: save it as CSV in UTF-8; its models are skipped"),
)  # fmt: skip


def test_a_damaged_file_is_named_kept_and_stops_nothing(tmp_path: Path, home: Home) -> None:
    for body, words in DAMAGED_FILES:
        home.models.write_bytes(body)
        found = read_own_catalogue(home)
        assert found.models == []
        assert words in found.problems[0][1]
    answers, said = estimated(str(runs_file(tmp_path, "llama-3.2-1b")), home=home)
    assert not answers["llama-3.2-1b"]["error"]
    assert words in said
    refused = gpufare("model", "add", str(config_file(tmp_path)), home=home)
    assert "fix it, or move it away" in refused.stderr
    assert home.models.read_bytes() == body


def test_a_damaged_line_costs_no_other_and_is_kept(tmp_path: Path, home: Home) -> None:
    bad = [row("bytes", title="\udcff").encode("utf-8", "surrogateescape"), b'"open,24']
    body = b"\r\n".join([HEADER.encode(), row("first").encode(), *bad, row("last").encode(), b""])
    home.models.write_bytes(body)
    added = gpufare("model", "add", str(config_file(tmp_path)), home=home)
    assert added.returncode == 0, added.stderr
    after = read_own_catalogue(home)
    assert [model.model for model in after.models] == ["first", "last", "mine-1b"]
    (_, one), (_, other) = after.problems
    assert "line 3: skipped: it has bytes that are not UTF-8" in one
    assert "line 4: skipped: a quote is not closed" in other
    assert home.models.read_bytes().startswith(body)


def test_a_model_is_added_to_a_file_of_a_spreadsheet(tmp_path: Path, home: Home) -> None:
    home.models.write_text(f"{HEADER}\n{row('mine')}".replace(",", ";"))
    assert gpufare("model", "add", str(config_file(tmp_path)), home=home).returncode == 0
    found = read_own_catalogue(home)
    assert ([model.model for model in found.models], found.problems) == (["mine", "mine-1b"], [])


REFUSED: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"num_key_value_heads": 7}, "m", "16 heads cannot share 7 KV heads evenly"),
    ({"model_type": "mixtral", "num_local_experts": 1 << 24}, "m", "parameters are impossible"),
    ({"padding": " " * MAX_BYTES}, "m", "is larger than 1048576 bytes, so it is not a config.json"),
    ({}, "Bad Name", "'Bad Name' is not a name: up to 80 lower-case letters"),
    ({}, "llama-3-8b", "is a model of the catalogue"),
)  # fmt: skip


def test_invalid_model_is_refused_in_one_line(tmp_path: Path, home: Home) -> None:
    for changes, name, words in REFUSED:
        refused = gpufare("model", "add", str(config_file(tmp_path, **changes)), "--name", name, home=home)
        assert refused.returncode == 1
        assert words in refused.stderr
        assert len(refused.stderr.splitlines()) == 1  # and no complaint of DuckDB about what is left alive
        assert "pydantic" not in refused.stderr
        assert not home.models.exists()


def test_only_classes_that_predict_tokens_are_added() -> None:
    for name in ("LlamaForCausalLM", "GPT2LMHeadModel", "Gemma3ForConditionalGeneration", "MarianMTModel"):
        assert shape_of("m", CONFIG | {"architectures": [name]}) == shape_of("m", CONFIG)
    assert shape_of("m", CONFIG | {"architectures": []}) == shape_of("m", CONFIG)
    for names in (["LlamaForSequenceClassification"], ["LlamaModel"], "LlamaForCausalLM"):
        with pytest.raises(ConfigError, match="not a class that predicts tokens"):
            shape_of("m", CONFIG | {"architectures": names})


@pytest.fixture
def client(httpserver: HTTPServer) -> Iterator[Client]:
    server = ReplayServer(httpserver.url_for("").rstrip("/"))
    with Client(limits=Limits(response_seconds=2, retries=0), replay=server, environment={}) as made:
        yield made


ADDRESS = "/somebody/mine-1b/resolve/main/config.json"


def test_a_config_is_had_from_the_hub(
    httpserver: HTTPServer, client: Client, tmp_path: Path, home: Home
) -> None:
    httpserver.expect_request(ADDRESS).respond_with_json(CONFIG)
    assert fetch_config("somebody/mine-1b", client) == CONFIG
    server = httpserver.url_for("").rstrip("/")
    added = gpufare("model", "add", "somebody/mine-1b", "--pages", server, home=home)
    assert "added mine-1b: 1.59B" in added.stdout, added.stderr
    (model,) = read_own_catalogue(home).models
    assert model.hf_id == "somebody/mine-1b"
    # Both ways to name it.
    answers, _ = estimated(str(runs_file(tmp_path, "somebody/mine-1b", "mine-1b")), home=home)
    assert answers["mine-1b"]["memory_gib"] == answers["somebody/mine-1b"]["memory_gib"] != ""


HOSTILE: tuple[tuple[int, bytes, dict[str, str], str], ...] = (
    (404, b"no", {}, "404"), (401, b"login", {}, "download its config.json"), (200, b"{", {}, "is not JSON"),
    (200, b"[" * 100_000, {}, "is not JSON"), (200, b"[1]", {}, "is not a JSON object"),
    (200, b" " * (MAX_BYTES + 1), {}, "config.json"), (302, b"", {"Location": ADDRESS}, "redirect"),
    (302, b"", {"Location": "https://elsewhere.example/config.json"}, "elsewhere.example"),
)  # fmt: skip


def test_a_hostile_hub_is_a_clear_error(httpserver: HTTPServer, client: Client) -> None:
    for status, body, headers, words in HOSTILE:
        httpserver.clear()
        httpserver.expect_request(ADDRESS).respond_with_data(body, status, headers)
        with pytest.raises(ConfigError, match=words):
            fetch_config("somebody/mine-1b", client)


def test_invalid_hub_id_is_never_requested() -> None:
    texts = ("a", "a/b/c", "../x/y", "a/..", "https://a/b", "a/b?c", "a/b c", "/a/b", "")
    assert [text for text in texts if is_hub_id(text)] == []
    assert is_hub_id("somebody/mine-1b")
