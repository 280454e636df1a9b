"""Thunder Compute's machines from its API, and its two modes on the page's cards."""

from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.sources.thundercompute import retry_requests
from tests.sources.edited_pages import each, edited, outcome, sample_row
from tests.sources.helpers import answer, contradicted, page

NAME = "pricing.html"
PAGE = page("thundercompute", NAME)
SOURCE = "thundercompute"


# --- the page ---


def test_the_same_gpu_has_a_price_per_mode() -> None:
    found = outcome(SOURCE, PAGE, columns="raw_label tier native_price context")
    assert [row for row in found if row[0] in ("L40", "A100 80GB NVLink")] == [
        ("L40", "prototyping", "0.89", {"vram_gb": 48}),
        ("L40", "production", "1.39", {"vram_gb": 48}),
        ("A100 80GB NVLink", "production", "1.79", {"vram_gb": 80}),
    ]
    modeless = edited(
        SOURCE, NAME, ("<h2>Prototyping</h2>", "<h2>On demand</h2>"), ("<h2>Production</h2>", "")
    )
    assert set(outcome(SOURCE, modeless, columns="tier")) == {None, "not_offered"}
    unknown = edited(SOURCE, NAME, ("Production</h2>", "Prototyping and production</h2>"))
    assert outcome(SOURCE, unknown, columns="tier") == ["prototyping"] * 4 + ["unknown_terms"] * 4
    one_mode = answer(edited(SOURCE, NAME, ("Production</h2>", "Prototyping</h2>")))
    assert contradicted(SOURCE, one_mode) == ["L40", "L40"]


# --- the API ---


def parts(changes: dict[str, Any], without: str = "") -> tuple[Any, ...]:
    """The API's three answers, with their prices and machines changed."""
    bodies = {name: sample_row(SOURCE, f"{name}.json") for name in ("pricing", "specs", "status")}
    for name, values in changes.items():
        bodies[name]["pricing" if name == "pricing" else "specs"] |= values
    return tuple(body for name, body in bodies.items() if name != without)


def test_a_machine_needs_its_price_and_specification() -> None:
    x2 = {"displayName": "NVIDIA H100", "gpuCount": 2, "vcpuOptions": [16, 8], "ramPerVCPUGiB": 8}
    listed = ("h100_x2", "6.4", 2, 8, 64, None, True)
    cases = [
        ({"specs": {"h100_x2": x2}}, [listed]),
        ({"specs": {"h100_x2": x2 | {"ramCapGiB": 420}}}, [(*listed[:4], None, *listed[5:])]),
        ({"specs": {"h100_x2": x2 | {"mode": "production"}}}, [(*listed[:5], "production", True)]),
        ({"specs": {"h100_x2": x2 | {"mode": "batch"}}}, ["unknown_terms"]),
        *each(
            [{"specs": {"h100_x2": x2 | {"vcpuOptions": n}}} for n in (None, [], [0], ["8"])], "missing_field"
        ),
        *each(
            [{"specs": {"h100_x2": x2 | {"displayName": ""}}}, {"specs": {"h100_x2": "soon"}}],
            "missing_field",
        ),
        ({"specs": {"h100_x2": x2 | {"gpuCount": None}}}, ["unknown_gpu_count"]),
        ({"pricing": {"h100_x2": 0}}, ["zero_price"]),
        ({"pricing": {"h100_x2": "soon"}}, ["unreadable_price"]),
        ({"pricing": {"h100_x2": None}}, ["not_offered"]),
        ({"pricing": {"x9": 1.5, "additional_vcpus": 1}}, [listed, "missing_field"]),
        *[
            ({"status": {"h100_x2": state}}, [(*listed[:6], None)])
            for state in ({"us": 1}, ["available"], None)
        ],
        ({"status": {"h100_x2": "unavailable"}}, [(*listed[:6], False)]),
    ]
    columns = "instance_type native_price gpu_count vcpus ram_gib tier available"
    usual = [row for row in outcome(SOURCE, *parts({}), columns=columns) if row[0] != "h100_x2"]
    wrong = []
    for change, expected in cases:
        found = outcome(SOURCE, *parts(change), columns=columns)
        if sorted(map(str, found)) != sorted(map(str, [*usual, *expected])):
            wrong.append((change, found))
    assert wrong == []


def test_the_api_is_read_before_the_page_which_stands_in_for_half_of_it() -> None:
    without_status = outcome(SOURCE, PAGE, *reversed(parts({}, "status")), columns="instance_type available")
    assert {row for row in without_status if isinstance(row, tuple)} >= {("h100_x2", None)}
    for missing in ("pricing", "specs"):
        assert outcome(SOURCE, *parts({}, missing)) == ["changed: no GPU in the API or in a card"]
        assert outcome(SOURCE, *parts({}, missing), PAGE) == outcome(SOURCE, PAGE)


def test_the_page_is_asked_once_where_the_api_does_not_answer() -> None:
    config = source_config(SOURCE)
    of_page, availability = config.settings["page"], config.settings["availability"]
    asked = [*(request.url for request in config.requests), of_page]
    instead = {url: [request.url for request in retry_requests(answer("", url), config)] for url in asked}
    assert availability in asked
    assert instead == {url: [] if url in (of_page, availability) else [of_page] for url in asked}
