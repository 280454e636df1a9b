"""Defects that other people's published price lists have had, each with the gate that stops it here.

Where a price is wrong in a provider's own answer, the real reader reads a page that has the defect; where it
is made in between, the listing that would carry it is judged.
"""

import re
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, Listing, SourceChangedError
from pipeline.contracts.offer import Built
from pipeline.contracts.outcome import Outcome
from pipeline.contracts.request import Entry
from pipeline.home.paths import Home
from pipeline.offers.build import build_offers
from pipeline.record.records import Records
from pipeline.refresh.ingest import record_day
from pipeline.sources import linode
from tests.sources.helpers import answer, page, read

DAY = date(2026, 8, 22)
AT_2_50 = Listing(
    raw_label="H100 SXM",
    gpu_count=1,
    price_kind="on_demand",
    native_price=Decimal("2.50"),
    native_currency="USD",
    native_unit="gpu_hour",
    answer=answer("{}"),
)


def built(source: str = "crusoe", **facts: Any) -> Built:
    """A listing that differs from an H100 SXM at 2.50 USD an hour by some facts."""
    return build_offers([replace(AT_2_50, **facts)], source_config(source))


def reading(source: str, name: str, old: str, new: str) -> Built:
    """A sample page with some of its text replaced, read and built."""
    text = page(source, name)
    edited = re.sub(old, new, text)
    assert edited != text, f"{old!r} is not on the page"
    listings, rejects = read(source, answer(edited))
    return build_offers([*listings, *rejects], source_config(source))


def recorded(source: str, home: Home, *answers: Answer, day: date = DAY, error: str | None = None) -> Outcome:
    """The outcome of a day on which the source gave these answers, archived and read into the record."""
    writer = Archive(home.archive).start(source, day)
    for each in answers:
        writer.add(Entry(url=each.url, observed_at=each.observed_at, outcome="ok"), each.body)
    return record_day(source_config(source), day, [writer.finish(error=error)], home)


def test_a_card_is_open_where_its_memory_count_or_name_fits_no_card() -> None:
    """Of eight cards, the total in the field of one still names the card."""
    found = {
        "total in the field of one": built(raw_label="A100 SXM4", gpu_count=8, context={"vram_gb": 320}),
        "times the count squared": built(gpu_count=8, context={"vram_total_gb": 640 * 8}),
        "the same in MiB": built(gpu_count=8, context={"gpu_total_ram_mib": 81_559 * 8 * 8}),
        "GB in a field of MiB": built(gpu_count=8, context={"gpu_ram_mib": 80}),
        "nothing that exists": built(gpu_count=8, context={"vram_gb": 64_000}),
        "a name of several cards": built(raw_label="RTX 6000"),
        "twelve in a label of eight": built(raw_label="8x H100 SXM", gpu_count=12),
        "twelve in a machine of eight": built(
            "aws", raw_label="p5.48xlarge", label_kind="instance_type", gpu_count=12
        ),
    }
    assert {name: (made.offers[0].gpu_id, made.offers[0].match_status) for name, made in found.items()} == {
        "total in the field of one": ("a100-sxm-40gb", "matched"),
        **dict.fromkeys(list(found)[1:], (None, "ambiguous")),
    }


def test_a_gap_on_a_page_shifts_no_price() -> None:
    """A call for sales instead of a price, a cell that is gone, another currency."""
    for old, new in (
        (r"<p>\$4\.29/GPU-hr</p>", "<p>Contact sales</p>"),
        (r'<div class="pricing-rich w-richtext"><p>\$4\.29/GPU-hr</p></div>', ""),
    ):
        prices = {
            o.gpu_id: (o.price_kind, o.native_price)
            for o in reading("crusoe", "pricing.html", old, new).offers
        }
        assert "h200-sxm-141gb" not in prices
        assert prices["h100-sxm-80gb"] == ("on_demand", Decimal("3.90"))
        assert prices["a100-sxm-80gb"] == ("on_demand", Decimal("2.30"))
    euros = reading("crusoe", "pricing.html", r"\$(\d)", r"€\1")
    assert euros.offers == []
    assert "unexpected_currency" in {reject.reason for reject in euros.rejects}
    for term in ("Pay as you go", "7-30 days", "31-90 days", "91-180 days"):
        with pytest.raises(SourceChangedError, match="expected one column"):
            reading("together", "pricing.html", rf"<th(?:(?!</th>).)*{term}(?:(?!</th>).)*</th>", "")


def test_no_old_price_is_stamped_as_fresh(tmp_path: Path) -> None:
    """A day without an answer has no new offers; the last ones keep the time at which they were observed."""
    home, records = Home(tmp_path), Records(Home(tmp_path))
    seen = answer(page("crusoe", "pricing.html"))
    recorded("crusoe", home, seen)
    failed = recorded("crusoe", home, day=DAY + timedelta(days=1), error="http_403: no")
    assert (failed.accepted, records.accepted_days("crusoe")) == (False, [DAY])
    assert {offer.observed_at for offer in records.offers("crusoe", DAY)} == {seen.observed_at}


def test_an_answer_of_another_shape_fails_its_source_with_a_reason(tmp_path: Path) -> None:
    shapes = ("null", "[]", '{"data": [null]}', '{"data": "x"}', '{"data": [{"gpus": {}}]}')
    bodies = [(name, body) for name in ("linode", "oci", "verda", "runpod") for body in shapes]
    bodies += [
        ("ecb", body) for body in ("", "<x>", "{}", "\x00", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>")
    ]
    outcomes = [
        recorded(name, Home(tmp_path / f"{number}"), answer(body))
        for number, (name, body) in enumerate(bodies)
    ]
    assert [each for each in outcomes if each.accepted or not (each.error or each.reason)] == []


def test_a_reader_that_breaks_fails_only_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise AttributeError("no \x1b[31m here")

    types = answer(page("linode", "types.json"))
    with monkeypatch.context() as patch:
        patch.setattr(linode, "read", breaks)
        outcome = recorded("linode", Home(tmp_path), types)
    assert outcome.error == (
        "the linode reader does not understand the answer (AttributeError: no \ufffd[31m here)"
    )
    assert (outcome.reason, outcome.result) == ("the answer could not be read", "changed")
    assert recorded("linode", Home(tmp_path), types).accepted
