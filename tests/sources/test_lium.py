"""Lium's feed of nodes: what can be ordered of a node, its share of the host, and contradictions."""

from pipeline.catalog.source_config import source_config
from pipeline.refresh.ingest import read_answers
from tests.sources.edited_pages import sample_row
from tests.sources.helpers import answer

NODE = sample_row("lium", "nodes.json", "nodes", 1)


def test_a_node_in_another_currency_is_refused_and_one_in_dollars_is_paid_by_the_second() -> None:
    body = {"nodes": [NODE, NODE | {"id": "n-2", "currency": "TAO"}]}
    built = read_answers([answer(body)], source_config("lium"), {})
    billed = [(offer.native_currency, offer.billing_increment_seconds) for offer in built.offers]
    assert (billed, [reject.reason for reject in built.rejects]) == ([("USD", 1)], ["unexpected_currency"])
