"""Denvr's machines: prices per GPU from the data in the page, and what is no price of one."""

import pytest

from pipeline.sources.denvr import SCRIPT
from tests.sources.edited_pages import each, edited, misread_edits, outcome


def test_a_price_is_one_per_gpu_or_rejected() -> None:
    uncertain = [
        *('"$2.10"', "2.1", '"$16.80 / hr"', '"$1500 / month"'),  # per GPU or per machine?
        *('"$2.10 / GPU$1.68 / GPU"', '"$2.10$1.68 / GPU"', '"$2.10 - $2.45 / GPU"', '"€2.10 / GPU"'),
        '{"amount": 2}',
    ]
    assert not misread_edits(
        "denvr",
        "pricing.html",
        '"$2.10 / GPU"',
        instead_of=[("NVIDIA H100 SXM", "2.1", None)],
        cases=[
            *each(['"$2.10 / GPU-hr"', '"$2.10/gpu/hour"'], ("NVIDIA H100 SXM", "2.1", None)),
            ('"From $2.10 / GPU"', [("NVIDIA H100 SXM", "2.1", "starting_price")]),
            *each(uncertain, "unreadable_price"),
            *each(['"Reserved only"', '"Contact us"', '""', "null"], "not_offered"),
            ('"$0.00 / GPU"', ["zero_price"]),
        ],
        columns="raw_label native_price flag_reason",
    )


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
