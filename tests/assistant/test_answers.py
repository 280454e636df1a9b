"""An answer that is too long becomes shorter, from what matters least on."""

from typing import Any

import pytest

from pipeline.assistant.answers import LEAST_ITEM_BYTES, MOST_BYTES, Answer, Table, refusal, size_bytes
from pipeline.contracts.errors import GpufareError
from tests.assistant.conftest import text_of

WORDS = "x" * 400


def answer(**parts: Any) -> Answer:
    return Answer(Table, {"columns": []}, listed="rows", **parts)


def test_extra_lines_go_first_and_from_the_last() -> None:
    result = answer(lines=["first"], extra=[f"{number} {WORDS}" for number in range(20)]).result()
    kept = [line.split()[0] for line in text_of(result).splitlines()]
    assert kept == ["first", *map(str, range(len(kept) - 1))]
    assert MOST_BYTES - len(WORDS) - 100 < size_bytes(result) <= MOST_BYTES


def test_then_the_shorter_lines_stand_for_the_lines() -> None:
    result = answer(lines=[WORDS * 10], shorter=["short"], extra=[WORDS], items=[("item", ["item"])]).result()
    assert text_of(result) == "short\nitem"


def test_then_items_are_left_out_and_counted() -> None:
    items = [(f"{number} {WORDS}", [number, WORDS]) for number in range(20)]
    result = answer(lines=["first"], items=items, narrow="ask for less", end=["last"]).result()
    rows = result.structured_content["rows"]
    assert rows == [value for _, value in items[: len(rows)]]
    assert result.structured_content["left_out"] == len(items) - len(rows) > 0
    said = f"{len(items) - len(rows)} more are left out: ask for less."
    assert text_of(result).splitlines()[-2:] == [said, "last"]
    assert MOST_BYTES - 2 * len(WORDS) - 100 < size_bytes(result) <= MOST_BYTES


def test_items_that_were_not_given_are_counted_as_left_out() -> None:
    result = answer(items=[("item", ["item"])], unlisted=1_200).result()
    assert result.structured_content["left_out"] == 1_200
    assert text_of(result).splitlines() == ["item", "1,200 more are left out: ask for less."]


def test_a_long_list_is_made_short_in_few_steps() -> None:
    made: list[int] = []

    class Counted(Table):
        def model_post_init(self, _context: Any) -> None:
            made.append(len(self.rows))

    items = [(f"the row with the number {number}", [number]) for number in range(50_000)]
    result = Answer(Counted, {"columns": []}, listed="rows", items=items).result()
    kept = len(result.structured_content["rows"])
    most = MOST_BYTES // LEAST_ITEM_BYTES
    assert 0 < kept < most
    assert max(made) <= most
    assert len(made) <= most.bit_length() + 1


def test_what_cannot_be_short_is_an_error() -> None:
    with pytest.raises(GpufareError, match="longer than 3,900 bytes: name fewer"):
        answer(items=[(WORDS * 5, [WORDS * 5])], narrow="name fewer").result()


def test_a_long_error_is_cut() -> None:
    result = refusal(GpufareError("é\x1b" * 9000))
    assert size_bytes(result) <= MOST_BYTES
    assert text_of(result).endswith("…")
    assert "\x1b" not in text_of(result)
