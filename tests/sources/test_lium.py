"""Lium's feed of nodes: what can be ordered of a node, its share of the host, and contradictions."""

from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.refresh.ingest import read_answers
from tests.sources.edited_pages import changed, sample_row
from tests.sources.helpers import answer

NODE = sample_row("lium", "nodes.json", "nodes", 1) | {"ram_gb": 2000, "disk_gb": 3576}


def feed(*changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    nodes = [changed(NODE, change) for change in changes]
    return {"generated_at": "2026-09-10T07:37:02Z", "count": len(nodes), "nodes": nodes} | more


def test_a_node_in_another_currency_is_refused_and_one_in_dollars_is_paid_by_the_second() -> None:
    body = feed({}, {"id": "n-2", "currency": "TAO"})
    built = read_answers([answer(body)], source_config("lium"), {})
    billed = [(offer.native_currency, offer.billing_increment_seconds) for offer in built.offers]
    assert (billed, [reject.reason for reject in built.rejects]) == ([("USD", 1)], ["unexpected_currency"])


def test_no_card_is_required_in_a_list_of_free_machines() -> None:
    required = {name: source_config(name).expect.must_have for name in ("lium", "vast", "primeintellect")}
    assert required == dict.fromkeys(required, ())
