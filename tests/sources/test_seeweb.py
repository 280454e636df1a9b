"""Seeweb's plans: numbers as texts, one offer per region, and what cannot be ordered."""

from pipeline.catalog.source_config import source_config
from tests.sources.edited_pages import outcome, sample_row

PLAN = sample_row("seeweb", "plans.json", "plans", 3)


def test_an_answer_with_an_error_is_a_change() -> None:
    assert outcome("seeweb", {"status": "error", "plans": [PLAN]}) == [
        "changed: the answer's status is 'error'"
    ]
    assert outcome("seeweb", {"plans": [PLAN]}) == [("A100 80GB", "1.98")]


def test_it_is_asked_only_with_a_token() -> None:
    assert source_config("seeweb").needs_key
