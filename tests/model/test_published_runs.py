"""Free text of the published compilation, column by column."""

from pipeline.model.frameworks import find_framework, frameworks
from pipeline.model.model_names import Architecture, RunError
from pipeline.model.published_runs import lora_targets_of, read_published
from pipeline.model.run_settings import RunRow
from tests.model.conftest import cases

KNOWN = {
    name: Architecture(name, size)
    for name, size in (("llama-3-8b", 8.03e9), ("llama-3.2-3b", 3.2e9), ("llama-3-70b", 70.55e9))
} | {"moe-12b-a2b": Architecture("moe-12b-a2b", 12e9, 64, 2e9)}
CASES = cases("published_texts.yaml")
ROW = {
    "id": "x", "source": "docs", "model": "Llama-3-8B", "method": "full", "gpu": "h100-sxm-80gb",
    "gpu_count": "8",
    "framework": "HF TRL", "precision": "bf16", "grad_checkpointing": "no", "flash_attention": "yes",
}  # fmt: skip


def read(**columns: str) -> RunRow:
    return read_published(ROW | columns, KNOWN, lambda label, _: label)


def test_a_column_becomes_a_setting() -> None:
    wrong = [
        (columns, setting, found, value)
        for columns, setting, value in CASES["settings"] + CASES["denied"]
        if (found := read(**columns).settings.get(setting)) != value
    ]
    assert wrong == []


def test_a_date_gives_the_month_of_the_software() -> None:
    found = [[text, read(date=text).settings.get("software_date")] for text, _ in CASES["dates"]]
    assert found == CASES["dates"]


def test_open_settings_of_a_row_are_assumptions() -> None:
    for columns, assumption in CASES["assumed"]:
        found = [": ".join(each) for each in read(**columns).assumptions]
        assert found == ([assumption] if assumption else []), columns


def test_words_that_are_not_understood_widen_the_bands() -> None:
    assert read(parallelism="FSDP2, zigzag halo").extrapolated
    assert not read(parallelism="FSDP2, CPU offload").extrapolated


def test_a_model_outside_the_catalogue_takes_the_shape_of_the_nearest_in_size() -> None:
    found = read(model="NoSuch-9B", params_b="9.1", active_params_b="2.5")
    assert found.settings["model"] == "moe-12b-a2b"
    assert found.scaled_to is not None
    assert (found.scaled_to.params_b, found.scaled_to.active_b) == (9.1, 2.5)
    assert read(model="NoSuch-4B").settings["model"] == "llama-3.2-3b"  # its name gives the size
    dense = read(model="NoSuch-9B", params_b="9.1", active_params_b="20").scaled_to
    assert dense is not None
    assert dense.active_b == 9.1


def test_framework_is_recognized_by_its_text() -> None:
    found = []
    for text, *_ in CASES["frameworks"]:
        framework, settings = find_framework(text), read(framework=text).settings
        found.append([text, framework and framework.name, settings["stack"], settings["loss_kernel"]])
    assert found == CASES["frameworks"]
    assert len({framework.name for framework in frameworks()}) == len(frameworks())
    # What MLPerf's entries do not name is a fused engine.
    stacks = {
        text: (found := find_framework(text, source)) and found.stack
        for text, source in (
            ("PyTorch", "MLPerf Training v5.0 (X)"), ("NGC PyTorch Deepspeed", "MLPerf Training v4.0 (X)"),
            ("PyTorch 1", "a blog"),
        )
    }  # fmt: skip
    assert stacks == {"PyTorch": "te", "NGC PyTorch Deepspeed": "hf", "PyTorch 1": None}


def test_values_that_no_setting_means_are_refused() -> None:
    wrong = []
    for columns, reason in CASES["refused"]:
        try:
            wrong.append((columns, reason, read(**columns).settings))
        except RunError as error:
            if reason not in str(error):
                wrong.append((columns, reason, str(error)))
    assert wrong == []


def test_lora_targets_under_their_many_names() -> None:
    found = [[text, lora_targets_of(text)] for text, _ in CASES["lora_targets"]]
    assert found == CASES["lora_targets"]
