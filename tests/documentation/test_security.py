"""Attacks that no other test makes, and whether every test that docs/explanation/security.md names exists."""

import re
import unicodedata
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.catalog.source_config import CatalogError, UnknownSourceError, load_config, source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.export.cells import csv_cell, safe_text
from pipeline.sources import ecb, source_module
from pipeline.warehouse.connection import connect
from tests.conftest import gpufare
from tests.sources.helpers import answer, read

PROJECT = Path(__file__).parents[2]
DOCUMENT = PROJECT / "docs" / "explanation" / "security.md"
ATTACKS = """Hostile page, Hostile host, Leaked key, Poisoned catalogue, CSV formula, HTML in a report,
Path in a name"""


def test_every_test_that_the_document_names_exists() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) >= 30
    missing = [
        (file, test)
        for file, test in named
        if not (PROJECT / file).exists()
        or (f"\ndef {test}(" if test else "\ndef test_") not in (PROJECT / file).read_text(encoding="utf-8")
    ]
    assert missing == []
    sections = dict(re.findall(r"^## (.+)\n([\s\S]+?)(?=^## |\Z)", text, re.MULTILINE))
    assert [attack for attack in re.split(r",\s", ATTACKS) if "`tests/" not in sections[attack]] == []


# --- a hostile page -----------------------------------------------------------------------------------------


def test_entities_of_xml_are_not_expanded() -> None:
    """Neither entities of entities nor those of a file or an address."""
    billion = "".join(f'<!ENTITY {b} "{f"&{a};" * 8}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    outside = [f'<!ENTITY i SYSTEM "{place}">' for place in ("file:///etc/passwd", "http://127.0.0.1:1/")]
    for declared in (f'<!ENTITY a "aaaaaaaaaa">{billion}', *outside):
        for place in ("<x>&i;</x>", '<Cube currency="&i;" rate="1"/>'):
            rate = f'<Cube currency="USD" rate="1.17"/>{place}'
            text = f'<!DOCTYPE x [{declared}]><x><Cube time="2026-08-21">{rate}</Cube></x>'
            with suppress(SourceChangedError):
                rates = ecb.read_rates([answer(text)], source_config("ecb")).usd_per_unit
                assert rates == {"USD": 1, "EUR": Decimal("1.17")}, (declared[:40], place)


def test_an_endlessly_nested_page_is_refused_or_read_as_empty() -> None:
    text = "<html>" + "<div>" * 20_000 + "H100 · 80 GB $2.00 /hr" + "</div>" * 20_000 + "</html>"
    for source in ("jarvislabs", "modal", "together", "nebius", "crusoe"):
        with suppress(SourceChangedError, RecursionError):
            assert len(read(source, answer(text))[0]) <= 1, source


# --- a poisoned catalogue -----------------------------------------------------------------------------------

GOOD = """title: Acme
provider: Acme
homepage: https://acme.example/
evidence: {level: inferred, date: 2026-08-22, note: none}
requests: [{url: 'https://acme.example/prices'}]
"""
POISONED = {
    "notes: !!python/object/apply:os.system ['echo pwned']": "could not determine a constructor",
    "currency: EUR\ncurrency: USD": "'currency' is given twice",
    "settings: {a: {b: 1, b: 2}}": "'b' is given twice",
    "execute: rm": "execute",
}


def test_a_yaml_that_is_not_plain_and_known_facts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "acme.yaml"
    path.write_text(GOOD)
    assert load_config(path).name == "acme"
    for line, said in POISONED.items():
        path.write_text(GOOD + line)
        with pytest.raises(CatalogError, match=re.escape(said)) as refused:
            load_config(path)
        assert "acme.yaml" in str(refused.value)


# --- formulas of spreadsheets -------------------------------------------------------------------------------


def test_a_formula_gets_an_apostrophe_in_both_ways_of_writing_csv() -> None:
    """Also after every blank character, be it of a later Unicode than the list was written from."""
    formulas = [f"{sign}SUM(A1)" for sign in "=+-@＝＋－＠"] + ["\u3000 \ufeff=1"]
    kinds = ("Zs", "Zl", "Zp", "Cc", "Cf")
    blanks = [chr(code) for code in range(0x11000) if unicodedata.category(chr(code)) in kinds] + ["\u3164"]
    assert len(blanks) > 100
    formulas += [f"{blank}=1" for blank in blanks]
    others = ["NVIDIA H100", "8x A100", "", "a=1", "'=1", "80 GB", "\u200bH100", "é=1", "０=1"]
    expected = [f"'{text}" for text in formulas] + others
    select = f"SELECT {csv_cell('x', 'VARCHAR')} FROM (SELECT unnest(?::VARCHAR[]) AS x)"
    with connect() as connection:
        rows = connection.execute(select, [formulas + others]).fetchall()
    assert [cell for (cell,) in rows] == expected
    assert [safe_text(text) for text in formulas + others] == expected


# --- paths in names -----------------------------------------------------------------------------------------


def test_a_source_name_is_neither_a_path_nor_a_module(tmp_path: Path) -> None:
    for name in ("../../etc/passwd", "/etc/passwd", "..", "os", "runpod/../aws", ""):
        with pytest.raises(UnknownSourceError):
            source_module(name)
        run = gpufare("refresh", "--source", name, "--pages", "archive", home=tmp_path / "home")
        assert (run.returncode, f"there is no source {name!r}" in run.stderr) == (1, True), name


def test_a_file_of_the_catalogue_with_another_name_is_not_a_source(tmp_path: Path) -> None:
    for name in ("..", ".hidden", "a b", "Acme", "a-b", "ａcme"):
        (tmp_path / f"{name}.yaml").write_text(GOOD)
        with pytest.raises(CatalogError):
            load_config(tmp_path / f"{name}.yaml")
