"""Text that is safe to store and to show."""

from pipeline.parsing.printable import LONGEST_ADDRESS, printable_json, short_addresses
from tests.parsing.cases import wrong


def test_all_texts_inside_a_value_are_made_printable() -> None:
    value = {"a\x00": ["b\u200b", ("c\n", 1)], 2: None, "d": 1.5}
    assert printable_json(value) == {"a\ufffd": ["b", ["c ", 1]], "2": None, "d": 1.5}


def test_a_long_address_loses_its_query_and_then_its_end() -> None:
    start = "https://a.example/"
    fits = start + "x" * (LONGEST_ADDRESS - len(start))
    cases = {
        f"see {fits} now": f"see {fits} now",
        f"see {fits}? now": f"see {fits[:-1]}… now",
        f"{start}?{'q' * 80} and {start}": f"{start}… and {start}",
        f"http://{'y' * 90}": f"http://{'y' * 72}…",
        "no address": "no address",
    }
    assert wrong(short_addresses, cases.items()) == []
