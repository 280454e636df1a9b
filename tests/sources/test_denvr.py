"""Denvr's machines: prices per GPU from the data in the page, and what is no price of one."""

import pytest

from pipeline.sources.denvr import SCRIPT
from tests.sources.edited_pages import edited, outcome


def test_a_number_of_gpus_may_be_a_text() -> None:
    assert outcome("denvr", edited("denvr", "pricing.html", ('"gpuCount": 8', '"gpuCount": "8"'))) == outcome(
        "denvr", edited("denvr", "pricing.html")
    )


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (f'id="{SCRIPT}"', 'id="other"', f"0 scripts '{SCRIPT}', not one"),
        ("</body>", f'<script id="{SCRIPT}">{{}}</script></body>', f"2 scripts '{SCRIPT}', not one"),
        ("dataBinding", "dataBound", "no machines at appsWarmupData.dataBinding.dataStore"),
        ('"dataBinding": {', '"dataBinding": [{', f"'{SCRIPT}' cannot be read"),
        ('"GPUInstances": {', '"GPUInstances": 1, "x": {', "no machines at "),
    ],
)
def test_data_of_another_shape_is_a_change(old: str, new: str, problem: str) -> None:
    (found,) = outcome("denvr", edited("denvr", "pricing.html", (old, new)))
    assert found.startswith(f"changed: {problem}")
