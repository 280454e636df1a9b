"""Seeweb's plans: numbers as texts, one offer per region, and what cannot be ordered."""

from pipeline.catalog.source_config import source_config
from tests.sources.edited_pages import alone, each, misread, outcome, sample_row

PLAN = sample_row("seeweb", "plans.json", "plans", 3)


def test_a_plan_is_offered_in_its_regions_or_rejected() -> None:
    twice = {"available_regions": [{"location": "it-fr2"}, {"location": "it-mi2"}, {"location": "it-fr2"}]}
    cases = [
        (twice, [("it-fr2", "1.98", 2, 240), ("it-mi2", "1.98", 2, 240)]),
        *each([{"available": False}, {"available_regions": None}, {"available_regions": []}], "not_offered"),
        ({"windows": True}, ["not_linux"]),
        ({"hourly_price": "1.98$2"}, ["unreadable_price"]),
        *each([{"gpu": "0"}, {"gpu": "two"}], "unknown_gpu_count"),
        *each([{"gpu": "0", "gpu_label": None}, {"gpu": "", "gpu_label": ""}], "changed: no plan with GPUs"),
    ]
    assert not misread("seeweb", alone(PLAN), cases, "region native_price gpu_count ram_gib")


def test_an_answer_with_an_error_is_a_change() -> None:
    assert outcome("seeweb", {"status": "error", "plans": [PLAN]}) == [
        "changed: the answer's status is 'error'"
    ]
    assert outcome("seeweb", {"plans": [PLAN]}) == [("A100 80GB", "1.98")]


def test_it_is_asked_only_with_a_token() -> None:
    assert source_config("seeweb").needs_key
