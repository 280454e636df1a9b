"""An object that gives one field two values is refused: the last one must not win silently."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.contracts.listing import SourceChangedError, read_json
from tests.sources.helpers import PAGES, answer, page, read

SOURCES = Path(__file__).parents[2] / "pipeline"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"price": 1, "price": 2}', "'1' and '2'"),
        ('{"data": [{"id": 1}, {"gpu": {"price": "1", "price": "2"}}]}', "'1' and '2'"),
        ('[{"a": {"x": 1}, "a": {"x": 2}}]', "\"{'x': 1}\" and \"{'x': 2}\""),
        ('{"price": null, "price": 2}', "'None' and '2'"),
        ('{"price": 2, "price": 3, "price": 2}', "'3' and '2'"),
    ],
)
def test_a_field_with_two_values_is_refused_with_both(text: str, values: str) -> None:
    with pytest.raises(SourceChangedError) as refused:
        answer(text).json()
    assert str(refused.value).endswith(f" has several values in one object: {values}")
    assert "https://prices.example/list" in str(refused.value)


def test_a_repetition_of_the_same_value_is_read() -> None:
    assert answer('{"price": 1.50, "price": 1.5}').json() == {"price": Decimal("1.5")}


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "{} {}", "NaN", '{"a": NaN}', "1e9999999999999999999"]
)
def test_text_that_is_not_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_json(text, "x")


def test_the_beginning_of_a_text() -> None:
    assert read_json('{"a": "line\nbreak"} and more', "x", beginning=True) == {"a": "line\nbreak"}


def _doubled(text: str) -> str:
    """The text with a second value behind the first field that is a text or a number; '' where none is."""
    doubled = False

    def twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal doubled
        found = next((name for name, value in pairs if isinstance(value, str | float)), None)
        if found is None or doubled:
            return dict(pairs)
        doubled = True
        return {**dict(pairs), f"{found}\0": "another value"}

    made = json.dumps(json.loads(text, object_pairs_hook=twice, parse_int=float)).replace("\\u0000", "")
    return made if doubled else ""


JSON_PAGES = sorted(
    (path.parent.name, path.name)
    for path in PAGES.glob("*/*.json")
    if path.name not in ("index.json", "none.json")
    and path.read_text(encoding="utf-8").lstrip().startswith(("{", "["))
    and _doubled(path.read_text(encoding="utf-8"))
)


@pytest.mark.parametrize(("source", "name"), JSON_PAGES)
def test_every_reader_refuses_a_field_with_two_values(source: str, name: str) -> None:
    text = _doubled(page(source, name))
    with pytest.raises(SourceChangedError, match="several values"):
        read(source, answer(text))


def test_a_price_given_twice_in_a_script_of_a_page_is_refused() -> None:
    offer = '{"@type": "Offer", "name": "1A100.22V", "price": "1", "price": "2", "priceCurrency": "USD"}'
    with pytest.raises(SourceChangedError, match="several values"):
        read("verda", answer(f'<html><script type="application/ld+json">{offer}</script></html>'))


def test_every_reader_decodes_json_with_the_shared_function() -> None:
    for room in ("sources", "parsing"):
        for module in (SOURCES / room).glob("*.py"):
            code = module.read_text(encoding="utf-8")
            assert "json.loads" not in code, module
            assert "JSONDecoder" not in code, module
