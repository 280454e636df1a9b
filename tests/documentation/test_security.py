"""Attacks that no other test makes, and whether every test that docs/explanation/security.md names exists."""

import ast
import json
import re
import unicodedata
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.replay import capture_pages
from pipeline.catalog.source_config import CatalogError, UnknownSourceError, load_config, source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.export.cells import csv_cell, safe_text
from pipeline.home.paths import CATALOG_DIR
from pipeline.sources import ecb, source_module
from pipeline.warehouse.connection import connect
from tests.conftest import gpufare
from tests.sources.helpers import answer, read

PROJECT = Path(__file__).parents[2]
DOCUMENT = PROJECT / "docs" / "explanation" / "security.md"


# --- the document -------------------------------------------------------------------------------------------


def test_every_test_that_the_document_names_exists() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) >= 30
    for file, test in named:
        tree = ast.parse((PROJECT / file).read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert not test or test in functions, f"{file} has no {test}"


@pytest.mark.parametrize(
    "attack",
    [
        "Hostile page",
        "Hostile host",
        "Leaked key",
        "Poisoned catalogue",
        "CSV formula",
        "HTML in a report",
        "Path in a name",
    ],
)
def test_every_attack_has_a_section_with_defences_and_tests(attack: str) -> None:
    sections = dict(re.findall(r"^## (.+)\n([\s\S]+?)(?=^## |\Z)", DOCUMENT.read_text(), re.MULTILINE))
    assert "`tests/" in sections[attack]


# --- a hostile page -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY a "aaaaaaaaaa">' + "".join(f'<!ENTITY {b} "&{a};&{a};&{a};&{a};&{a};&{a};&{a};&{a};">' for a, b in ("ab", "bc", "cd", "de", "ef", "fg", "gh", "hi")),  # noqa: E501
        '<!ENTITY i SYSTEM "file:///etc/passwd">',
        '<!ENTITY i SYSTEM "http://127.0.0.1:1/">',
    ],
    ids=["entities of entities", "a file", "an address"],
)  # fmt: skip
@pytest.mark.parametrize("place", ["<x>&i;</x>", '<Cube currency="&i;" rate="1"/>'])
def test_entities_of_xml_are_not_expanded(declared: str, place: str) -> None:
    rate = f'<Cube currency="USD" rate="1.17"/>{place}'
    text = f'<!DOCTYPE x [{declared}]><x><Cube time="2026-08-21">{rate}</Cube></x>'
    try:
        rates = ecb.read_rates([answer(text)], source_config("ecb"))
    except SourceChangedError:
        return
    assert rates.usd_per_unit == {"USD": 1, "EUR": Decimal("1.17")}


@pytest.mark.parametrize("source", ["jarvislabs", "modal", "together", "nebius", "crusoe"])
def test_an_endlessly_nested_page_is_refused_or_read_as_empty(source: str) -> None:
    text = "<html>" + "<div>" * 20_000 + "H100 · 80 GB $2.00 /hr" + "</div>" * 20_000 + "</html>"
    try:
        listings, _ = read(source, answer(text))
    except (SourceChangedError, RecursionError):
        return
    assert len(listings) <= 1


# --- a poisoned catalogue -----------------------------------------------------------------------------------


def poisoned(tmp_path: Path, *lines: str, name: str = "acme") -> Path:
    """The yaml of a source with further lines."""
    path = tmp_path / f"{name}.yaml"
    path.write_text(
        "\n".join(
            [
                "title: Acme",
                "provider: Acme",
                "homepage: https://acme.example/",
                "evidence: {level: inferred, date: 2026-08-22, note: none}",
                "requests: [{url: 'https://acme.example/prices'}]",
                *lines,
            ]
        ),
        encoding="utf-8",
    )
    return path


def test_a_yaml_that_is_good(tmp_path: Path) -> None:
    assert load_config(poisoned(tmp_path)).name == "acme"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("notes: !!python/object/apply:os.system ['echo pwned']", "could not determine a constructor"),
        ("currency: EUR\ncurrency: USD", "'currency' is given twice"),
        ("expect: {rows_max: 60, rows_max: 100000}", "'rows_max' is given twice"),
        ("settings: {a: {b: 1, b: 2}}", "'b' is given twice"),
        ("execute: rm", "execute"),
        ("max_body_bytes: -1", "max_body_bytes"),
    ],
)
def test_a_yaml_that_is_not_plain_and_known_facts_is_refused(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(CatalogError) as refused:
        load_config(poisoned(tmp_path, line))
    assert says in str(refused.value)
    assert "acme.yaml" in str(refused.value)


def test_no_yaml_of_the_catalogue_gives_a_key_twice() -> None:
    files = list((CATALOG_DIR / "sources").glob("*.yaml"))
    assert files
    for path in files:
        load_config(path)


# --- formulas of spreadsheets -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\N{FULLWIDTH EQUALS SIGN}1", "\u3000=1"]
    + [f"{sign}HYPERLINK(1)" for sign in "＝＋－＠"]
    + [
        f"{blank}=1+1"
        for blank in ("\xa0", "\x0b", "\x00", "\x85", "\xad", "\u200b", "\u2028", "\ufeff", "\u3164")
    ]
    + ["\u3000 \u200b\ufeff=1+1"],
)
def test_a_formula_gets_an_apostrophe_in_both_ways_of_writing_csv(text: str) -> None:
    assert both_ways(text) == [f"'{text}", f"'{text}"]


@pytest.mark.parametrize(
    "text", ["NVIDIA H100", "8x A100", "", "a=1", "'=1", "80 GB", "\u200bH100", "é=1", "０=1"]
)
def test_other_text_is_unchanged(text: str) -> None:
    assert both_ways(text) == [text, text]


def test_every_blank_character_before_a_formula_is_seen_in_both_ways() -> None:
    """Also those of a later Unicode than the list was written from."""
    kinds = ("Zs", "Zl", "Zp", "Cc", "Cf")
    texts = [f"{chr(code)}=1" for code in range(0x11000) if unicodedata.category(chr(code)) in kinds]
    assert len(texts) > 100
    assert [text for text in texts if safe_text(text) == text] == []
    assert in_sql(texts) == [safe_text(text) for text in texts]


def both_ways(text: str) -> list[str]:
    return [safe_text(text), *in_sql([text])]


def in_sql(texts: list[str]) -> list[str]:
    with connect() as connection:
        rows = connection.execute(
            f"SELECT {csv_cell('x', 'VARCHAR')} FROM (SELECT unnest(?::VARCHAR[]) AS x)", [texts]
        ).fetchall()
    return [cell for (cell,) in rows]


# --- paths in names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "os", "runpod/../aws", ""])
def test_a_source_name_is_neither_a_path_nor_a_module(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownSourceError):
        source_module(name)
    run = gpufare("refresh", "--source", name, "--pages", "archive", home=tmp_path / "home")
    assert run.returncode == 1
    assert f"there is no source {name!r}" in run.stderr


@pytest.mark.parametrize("name", ["..", ".hidden", "a b", "Acme", "a-b", "ａcme"])
def test_a_file_of_the_catalogue_with_another_name_is_not_a_source(name: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogError):
        load_config(poisoned(tmp_path, name=name))


@pytest.mark.parametrize("file", ["../secret.txt", "/etc/passwd", "a/../../secret.txt", "link.txt"])
def test_an_index_cannot_name_a_file_outside_of_its_folder(file: str, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "pages" / "runpod"
    folder.mkdir(parents=True)
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    row = {"url": "https://api.runpod.io/graphql", "file": file}
    (folder / "index.json").write_text(json.dumps([row]))
    archive = Archive(tmp_path / "archive")
    config = source_config("runpod")
    capture = capture_pages(tmp_path / "pages", config, day=config.evidence.date, archive=archive)
    assert capture.status == "failed"
    assert not list(archive.root.rglob("*.gz"))
