"""The data of Next.js pages: pieces that end anywhere, and what is no such data."""

import json
import re
from decimal import Decimal

from pipeline.parsing.flight import MAX_VALUE_CHARACTERS, MAX_VALUES, flight_text, objects_after
from tests.parsing.cases import outcome
from tests.sources.helpers import answer

TEXT = (
    '1a:["$","td",null,{"children":"× $$1.49 \\"quoted\\" \u2014 end"}]\n1b:{"price":1.10,"name":"a]b}c"}\n'
)
PAGE = answer("", "https://a.example/")


def values(text: str, beginning: str = r"(?<=1b:)\{") -> object:
    return outcome(lambda: list(objects_after(text, re.compile(beginning), PAGE)))


def test_the_pieces_are_joined_before_they_are_read() -> None:
    for size in (1, 7, 1000):
        pieces = [TEXT[at : at + size] for at in range(0, len(TEXT), size)]
        scripts = "".join(f"<script>self.__next_f.push([1,{json.dumps(piece)}])</script>" for piece in pieces)
        assert flight_text(answer(f"<html>{scripts}</html>")) == TEXT


def test_values_are_read_from_where_they_begin() -> None:
    assert values(TEXT) == [{"price": Decimal("1.10"), "name": "a]b}c"}]
    assert values('1b:{"price":1.1,"price":1.2}') == (
        "https://a.example/: the field 'price' has several values in one object: '1.1' and '1.2'"
    )


def test_a_value_that_is_cut_or_damaged_is_refused() -> None:
    for value in ('{"price":1.1', '{"price":1.1,}', '{"price":NaN}'):
        assert str(values(f"1b:{value}")).startswith(f"https://a.example/: {value!r} is not a JSON value (")
    long = f'{{"a":"{"x" * 100}'
    assert str(values(f"1b:{long}")).startswith(f"https://a.example/: {long[:60]!r} is not a JSON value (")


def test_a_value_has_a_maximum_of_characters() -> None:
    fits = f'{{"a":"{"x" * (MAX_VALUE_CHARACTERS - 8)}"}}'
    assert values(f"1b:{fits}") == [json.loads(fits)]
    assert "is not a JSON value" in str(values(f"1b:{fits[:6]}x{fits[6:]}"))


def test_a_page_has_a_maximum_of_values() -> None:
    assert values("{}" * MAX_VALUES, r"\{") == [{}] * MAX_VALUES
    too_many = "https://a.example/: more than 500 values in the page's data"
    assert values("{}" * (MAX_VALUES + 1), r"\{") == too_many
