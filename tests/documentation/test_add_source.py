"""docs/how-to/add-source.md: its files, as they stand there, are a source whose page is read as it says."""

import csv
import io
import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from pipeline.catalog.source_config import load_config
from pipeline.contracts.listing import Answer
from pipeline.offers.build import build_offers
from tests.documentation.pages import blocks
from tests.sources.test_sources import shown, typed

PAGE = "docs/how-to/add-source.md"


def block(language: str, number: int = 0) -> str:
    return [each.text for each in blocks(language) if each.page == PAGE][number]


def test_documented_sample_page_is_read(tmp_path: Path) -> None:
    (tmp_path / "acme.yaml").write_text(block("yaml"))
    config = load_config(tmp_path / "acme.yaml")
    reader = ModuleType("pipeline.sources.acme")
    exec(block("python"), reader.__dict__)
    (entry,) = json.loads(block("json", 1))
    body = block("json", 0).encode()
    assert entry["url"] == config.requests[0].url
    answer = Answer(
        url=entry["url"],
        body=body,
        sha256=sha256(body).hexdigest(),
        observed_at=datetime.fromisoformat(entry["observed_at"]).astimezone(UTC),
    )
    built = build_offers(reader.read([answer], config), config, {})

    expected = list(csv.DictReader(io.StringIO(block("text", 0))))
    found = [{column: shown(getattr(offer, column)) for column in expected[0]} for offer in built.offers]
    assert found == [{column: typed(column, text) for column, text in row.items()} for row in expected]
    assert len(found) == 2
    (rejected,) = csv.DictReader(io.StringIO(block("text", 1)))
    assert [reject.reason for reject in built.rejects] == [rejected["reason"]] * int(rejected["rows"])
