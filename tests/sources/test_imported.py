"""Dated prices from files: each row becomes one listing, or a reject that names its line and the reason."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from pipeline.capture.index import sha256_of
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.contracts.offer import Built
from pipeline.refresh.ingest import read_answers

DAY = datetime(2026, 1, 2, tzinfo=UTC)
ROW = {
    "day": "2026-01-02",
    "gpu": "H100 SXM",
    "provider": "Acme",
    "price_kind": "on_demand",
    "usd_per_gpu_hour": "2.50",
    "source": "https://acme.example",
}


def answer(text: str, name: str = "facts.csv") -> Answer:
    body = text.encode()
    return Answer(url=f"file:///{name}", body=body, observed_at=DAY, sha256=sha256_of(body))


def table(*rows: Mapping[str, str]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(f'"{row.get(name, "")}"' for name in names) for row in rows]
    return "\n".join([",".join(names), *lines, ""])


def built(*texts: str) -> Built:
    answers = [answer(text, f"{number}.csv") for number, text in enumerate(texts)]
    return read_answers(answers, source_config("imported"))


def test_a_row_is_an_offer_with_its_provenance() -> None:
    (offer,) = built(table(ROW | {"region": "Ohio", "country": "US", "evidence": "list"})).offers
    assert (offer.source, offer.provider, offer.gpu_id) == ("imported", "Acme", "h100-sxm-80gb")
    assert (offer.usd_per_gpu_hour, offer.native_unit, offer.price_kind) == (
        Decimal("2.5"),
        "gpu_hour",
        "on_demand",
    )
    assert (offer.observed_at, offer.source_url) == (DAY, "https://acme.example")
    assert (offer.region, offer.country) == ("Ohio", "US")


def test_a_row_that_cannot_be_read_for_sure_is_rejected() -> None:
    cases: list[tuple[dict[str, str], str, str]] = [
        ({"day": "2.1.2026"}, "invalid_value", "its day is not YYYY-MM-DD"),
        ({"day": "2026-01-03"}, "invalid_value", "the answer is of 2026-01-02"),
        ({"gpu": "L4 (GPU part only)"}, "other_product", "of a part of a machine"),
        ({"gpu": ""}, "missing_field", "gpu is empty"),
        ({"gpu_id": "h100-sxm-81gb"}, "invalid_value", "'h100-sxm-81gb' is not in the catalogue"),
        ({"gpu": "TPU v5e"}, "not_a_gpu", "is not a GPU"),
        ({"provider": ""}, "missing_field", "provider is empty"),
        ({"source": " "}, "missing_field", "source is empty"),
        ({"source": "=HYPERLINK(1)"}, "invalid_value", "source is a spreadsheet formula"),
        ({"price_kind": "marketplace_median"}, "unknown_price_kind", "not one price"),
        ({"price_kind": "reserved_1yr", "term_days": "30"}, "unknown_term_length", "contradict"),
        ({"term_days": "30"}, "unknown_term_length", "contradict"),
        ({"price_kind": "reserved", "term_days": "some"}, "unknown_term_length", "not a whole number"),
        ({"usd_per_gpu_hour": "two"}, "unreadable_price", "'two' is not a number"),
        ({"usd_per_gpu_hour": "NaN"}, "unreadable_price", "'NaN' is not a number"),
        ({"usd_per_gpu_hour": "0"}, "zero_price", "the price is 0"),
        ({"usd_per_gpu_hour": "1e6"}, "price_out_of_bounds", "expected between 0.001 and 1000"),
        ({"unit": "per_instance_hour"}, "unknown_unit", "contradicts it"),
        ({"gpu_count": "1.5"}, "unknown_gpu_count", "GPU count 1.5 is not a whole number"),
        ({"gpu_count": "99999"}, "impossible_gpu_count", "at most 4096"),
        ({"country": "XX"}, "invalid_value", "not a code of ISO 3166-1"),
        ({"evidence": "x" * 1001}, "text_too_long", "evidence has more than 1000 characters"),
    ]
    for changes, reason, words in cases:
        found = built(table(ROW | {"gpu": "L4"}, ROW | changes))
        assert [offer.gpu_id for offer in found.offers] == ["l4"]
        (reject,) = found.rejects
        assert reject.reason == reason
        assert words in reject.detail


def test_a_line_that_is_not_a_row_is_rejected_with_its_line_number() -> None:
    text = f"line in file,{table(ROW)}".replace('\n"', '\n7,"', 1) + "9,a,b\n"
    (reject,) = built(text).rejects
    assert (reject.reason, reject.detail) == (
        "unreadable_row",
        "line 9 of file:///0.csv: it has 3 values for 7 columns",
    )


def test_a_machine_is_known_by_the_names_of_its_provider() -> None:
    machine = {"gpu": "p5.48xlarge", "provider": "AWS", "unit": "per_instance_hour", "price_usd_hr": "55.04"}
    row = {name: cell for name, cell in ROW.items() if name != "usd_per_gpu_hour"} | machine
    (offer,) = built(table(row)).offers
    assert (offer.gpu_id, offer.gpu_count, offer.usd_per_gpu_hour) == ("h100-sxm-80gb", 8, Decimal("6.88"))


def test_a_price_of_a_machine_needs_its_number_of_gpus() -> None:
    row = {name: cell for name, cell in ROW.items() if name != "usd_per_gpu_hour"} | {"usd_per_hour": "16"}
    assert [reject.reason for reject in built(table(row)).rejects] == ["unknown_gpu_count"]
    (offer,) = built(table(row | {"gpu_count": "8", "price_kind": "spot_community"})).offers
    assert (offer.usd_per_gpu_hour, offer.price_kind, offer.tier) == (2, "spot", "community")


def test_what_several_files_state_alike_counts_once_also_on_a_marketplace() -> None:
    row = ROW | {"price_kind": "marketplace_offer_on_demand"}
    found = built(table(row), table(row, row | {"usd_per_gpu_hour": "2.60"}))
    assert [offer.usd_per_gpu_hour for offer in found.offers] == [Decimal("2.50"), Decimal("2.60")]
    assert [reject.detail for reject in found.rejects] == [
        "line 2 of file:///1.csv: it repeats line 2 of file:///0.csv"
    ]


def test_prices_of_several_providers_do_not_contradict_each_other() -> None:
    """For one provider they would: a spot price above the on-demand price, and one five times the other."""
    rows = [ROW | {"provider": "Cheap", "usd_per_gpu_hour": "2"}]
    rows += [ROW | {"provider": "Dear", "usd_per_gpu_hour": "11"}]
    rows += [ROW | {"provider": "Dear", "usd_per_gpu_hour": "8", "price_kind": "spot"}]
    assert [offer.flag_reason for offer in built(table(*rows)).offers] == [None, None, None]
    alone = [row | {"provider": "Dear"} for row in rows if row["usd_per_gpu_hour"] != "11"]
    assert [offer.flag_reason for offer in built(table(*alone)).offers] == [None, "spot_not_below_on_demand"]


def test_an_answer_that_is_not_a_table_of_prices_is_refused() -> None:
    missing = "lacks the columns day, provider, price_kind, usd_per_gpu_hour, source, gpu or gpu_id"
    for text, words in (
        ("", missing),
        ("day,as_of\n", "more than one column for day: day, as_of"),
        ("day,day\n", "has the column 'day' more than once"),
    ):
        with pytest.raises(SourceChangedError, match=words):
            built(text)
