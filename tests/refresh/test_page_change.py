"""A price that moves is compared with the archived page of its last reading."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import source_config
from pipeline.contracts.request import Entry
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.ingest import record_day
from tests.sources.helpers import sample_answers

DAYS = [date(2026, 8, 22) + timedelta(days=number) for number in range(3)]

CUT = ("<span>$2.69</span>", "<span>$2.19</span>")
WITH_CODE = ("<span>$2.69</span>", '<span>$2.19</span><span class="tag">with code</span>')


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (CUT, [("price_jump", None, "2.69"), (None, "page", "2.19")]),
        (WITH_CODE, [("page_changed", None, "2.69")] * 2),
    ],
)
def test_a_cut_is_believed_on_its_second_day_if_the_page_shows_nothing_else(
    edit: tuple[str, str], found: list[tuple[str | None, str | None, str]], tmp_path: Path
) -> None:
    home, records = Home(tmp_path), Records(Home(tmp_path))
    (given,) = sample_answers("jarvislabs")
    for day in DAYS:
        body = given.body.decode().replace(*edit) if day > DAYS[0] else given.body.decode()
        answer = replace(given, body=body.encode())
        writer = Archive(home.archive).start("jarvislabs", day)
        writer.add(Entry(url=given.url, observed_at=given.observed_at, outcome="ok"), answer.body)
        assert record_day(source_config("jarvislabs"), day, [writer.finish()], home).accepted
    cut = [
        offer
        for day in DAYS[1:]
        for offer in records.offers("jarvislabs", day)
        if offer.gpu_id == "h100-sxm-80gb"
    ]
    assert [(each.doubt, each.believed_because, f"{each.native_price:.2f}") for each in cut] == found
