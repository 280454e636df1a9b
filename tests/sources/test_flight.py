"""The data of Next.js pages: pieces that end anywhere, and what is no such data."""

import json
import re
from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError
from pipeline.parsing.flight import flight_text, objects_after
from tests.sources.helpers import answer

TEXT = (
    '1a:["$","td",null,{"children":"× $$1.49 \\"quoted\\" \u2014 end"}]\n1b:{"price":1.10,"name":"a]b}c"}\n'
)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_pieces_are_joined_before_they_are_read(size: int) -> None:
    pieces = [TEXT[at : at + size] for at in range(0, len(TEXT), size)]
    scripts = "".join(f"<script>self.__next_f.push([1,{json.dumps(piece)}])</script>" for piece in pieces)
    assert flight_text(answer(f"<html>{scripts}</html>")) == TEXT


def test_a_part_of_a_stream_without_its_page_is_read_too() -> None:
    assert (
        flight_text(answer('\\"A30-x 1-0\\",{\\"n\\":1}]\n\\"L4-x 1-0\\"'))
        == '"A30-x 1-0",{"n":1}]\n"L4-x 1-0"'
    )
    assert flight_text(answer('{"id": "plan_1"}')) == '{"id": "plan_1"}'


@pytest.mark.parametrize(
    "body",
    [
        '<script>self.__next_f.push([1,"\\"a\\x41"])</script>',
        '<script>self.__next_f.push([1,"\\"a\n\\""])</script>',
    ],
)
def test_pieces_that_are_not_text_are_refused(body: str) -> None:
    with pytest.raises(SourceChangedError, match="cannot be read"):
        flight_text(answer(body))


def test_values_are_read_from_where_they_begin() -> None:
    found = objects_after(TEXT, re.compile(r"(?<=1b:)\{"), answer(""))
    assert list(found) == [{"price": Decimal("1.10"), "name": "a]b}c"}]


@pytest.mark.parametrize("text", ['1b:{"price":1.1', '1b:{"price":1.1,}', '1b:{"price":NaN}'])
def test_a_value_that_is_cut_or_damaged_is_refused(text: str) -> None:
    with pytest.raises(SourceChangedError, match="is not a JSON value"):
        list(objects_after(text, re.compile(r"(?<=1b:)\{"), answer("")))


def test_a_field_with_two_values_is_refused() -> None:
    with pytest.raises(SourceChangedError, match="several values"):
        list(objects_after('1b:{"price":1.1,"price":1.2}', re.compile(r"(?<=1b:)\{"), answer("")))


def test_a_page_with_more_values_than_any_has_is_refused() -> None:
    with pytest.raises(SourceChangedError, match="more than 500 values"):
        list(objects_after("{}" * 501, re.compile(r"\{"), answer("")))
