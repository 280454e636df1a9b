"""Defects that other people's published price lists have had, each with the gate that stops it here.

Where a price is wrong in a provider's own answer, the real reader reads a page that has the defect; where it
is made in between, the listing that would carry it is judged.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, Listing, SourceChangedError
from pipeline.contracts.offer import Built
from pipeline.contracts.outcome import Outcome
from pipeline.contracts.rates import Rate
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.contracts.request import Entry
from pipeline.home.paths import Home
from pipeline.offers.build import build_offers
from pipeline.record.records import Records
from pipeline.refresh.ingest import record_day
from tests.sources.helpers import answer, page, read

DAY = date(2026, 8, 22)


def listing(**changes: Any) -> Listing:
    facts: dict[str, Any] = {
        "raw_label": "H100 SXM",
        "gpu_count": 1,
        "price_kind": "on_demand",
        "native_price": Decimal("2.50"),
        "native_currency": "USD",
        "native_unit": "gpu_hour",
        "answer": answer("{}"),
    }
    return Listing(**facts | changes)


def built(*listings: Listing, rates: dict[str, Rate] | None = None, source: str = "crusoe") -> Built:
    return build_offers(listings, source_config(source), rates)


def reading(source: str, name: str, *edits: tuple[str, str], count: int = 0) -> Built:
    """A sample page with some of its text replaced, read and built."""
    text = page(source, name)
    for old, new in edits:
        edited = re.sub(old, new, text, count=count)
        assert edited != text, f"{old!r} is not on the page"
        text = edited
    listings, rejects = read(source, answer(text))
    return build_offers([*listings, *rejects], source_config(source))


def recorded(source: str, home: Home, *answers: Answer, day: date = DAY, error: str | None = None) -> Outcome:
    """The outcome of a day on which the source gave these answers, archived and read into the record."""
    writer = Archive(home.archive).start(source, day)
    for each in answers:
        writer.add(Entry(url=each.url, observed_at=each.observed_at, outcome="ok"), each.body)
    return record_day(source_config(source), day, [writer.finish(error=error)], home)


def test_a_spot_price_of_zero_is_not_a_price() -> None:
    (reject,) = built(listing(price_kind="spot", native_price=Decimal("0.00"))).rejects
    assert reject.reason == "zero_price"


@pytest.mark.parametrize("spot", ["2.50", "2.51"])
def test_a_spot_price_not_below_on_demand_is_flagged(spot: str) -> None:
    offers = built(listing(), listing(price_kind="spot", native_price=Decimal(spot))).offers
    assert [offer.flag_reason for offer in offers] == [None, "spot_not_below_on_demand"]


@pytest.mark.parametrize("price", ["null", '""', '"N/A"'])
def test_a_machine_without_a_price_is_not_an_offer(price: str) -> None:
    found = reading("linode", "types.json", ('"hourly": 1.5\\b', f'"hourly": {price}'))
    assert not any(offer.instance_type == "g1-gpu-rtx6000-1" for offer in found.offers)
    assert "not_offered" in {reject.reason for reject in found.rejects}


def test_the_price_of_a_gpu_without_its_machine_is_not_an_offer() -> None:
    machines = json.loads(page("cudo", "machine_types.json"))["machineTypes"]
    alone = [{k: v for k, v in machine.items() if k != "vcpuPriceHr"} for machine in machines]
    listings, rejects = read("cudo", answer({"machineTypes": alone}))
    assert listings == []
    assert all("vcpuPriceHr" in reject.detail for reject in rejects if reject.reason == "not_offered")


def test_duplicates_count_once() -> None:
    found = built(listing(), listing())
    assert len(found.offers) == 1
    assert [reject.reason for reject in found.rejects] == ["duplicate"]


@pytest.mark.parametrize("machine", [{}, {"instance_type": "gpu-8x", "available": True}])
def test_two_prices_for_the_same_offer_are_flagged(machine: dict[str, Any]) -> None:
    dearer = machine | {"native_price": Decimal("3.50"), "available": False}
    offers = built(listing(**machine), listing(**dearer), listing(**machine, region="eu")).offers
    assert [offer.flag_reason for offer in offers] == ["conflicting_prices", "conflicting_prices", None]


def test_a_card_that_is_listed_twice_at_one_price_is_in_no_doubt() -> None:
    twice = (listing(available=None), listing(available=True))
    assert [offer.flag_reason for offer in built(*twice).offers] == [None, None]
    spot = listing(price_kind="spot", available=None)
    assert [offer.flag_reason for offer in built(*twice, spot).offers][-1] == "spot_not_below_on_demand"


@pytest.mark.parametrize(
    "memory",
    [
        {"vram_total_gb": 640 * 8},
        {"gpu_total_ram_mib": 81_559 * 8 * 8},
        {"gpu_ram_mib": 80},
        {"vram_gb": 64_000},
    ],
    ids=["times the count squared", "the same in MiB", "GB in a field of MiB", "nothing that exists"],
)
def test_a_memory_that_no_such_card_has_leaves_the_card_open(memory: dict[str, float]) -> None:
    (offer,) = built(listing(gpu_count=8, context=memory)).offers
    assert (offer.gpu_id, offer.match_status) == (None, "ambiguous")


def test_total_memory_in_the_per_card_field_does_not_change_the_card() -> None:
    """320 GB of 8 A100 are 40 GB cards and never 80 GB ones."""
    (offer,) = built(listing(raw_label="A100 SXM4", gpu_count=8, context={"vram_gb": 320})).offers
    assert offer.gpu_id == "a100-sxm-40gb"


@pytest.mark.parametrize("blank", ["", " ", "\u200b", "\n"])
def test_a_blank_region_is_none(blank: str) -> None:
    (offer,) = built(listing(region=blank)).offers
    assert offer.region is None


@pytest.mark.parametrize("blank", ["", " \u200b"])
def test_a_zero_price_is_not_an_offer(blank: str) -> None:
    (reject,) = built(listing(raw_label=blank)).rejects
    assert reject.reason == "missing_field"


def test_a_spot_price_that_is_the_fixed_price_again_is_flagged() -> None:
    """RunPod's spot prices of cards without bids repeat the on-demand price."""
    listings, rejects = read("runpod", answer(page("runpod", "gpu_types.json")))
    offers = build_offers([*listings, *rejects], source_config("runpod")).offers
    mi300x = [o for o in offers if o.gpu_id == "mi300x" and o.price_kind == "spot" and o.tier == "secure"]
    assert [(o.native_price, o.flag_reason) for o in mi300x] == [
        (Decimal("2.39"), "spot_not_below_on_demand")
    ]


def test_a_bid_at_the_price_of_the_same_ask_is_flagged() -> None:
    ask = {
        "id": 7,
        "gpu_name": "RTX 4090",
        "num_gpus": 1,
        "gpu_ram": 24_564,
        "dph_total": 0.3,
        "min_bid": 0.3,
    }
    fixed, bid = answer({"offers": [ask]}), answer({"offers": [ask | {"is_bid": True}]})
    listings, _ = read("vast", fixed, bid)
    assert [(row.price_kind, row.flag_reason) for row in listings] == [
        ("on_demand", None),
        ("spot", "spot_not_below_on_demand"),
    ]


def test_a_placeholder_price_is_not_a_price() -> None:
    """RunPod shows 0.5 for tiers in which it does not offer the card."""
    gpu = {"id": "NVIDIA H100 80GB HBM3", "memoryInGb": 80, "communityPrice": 0.5, "securePrice": 2.69}
    listings, rejects = read("runpod", answer({"data": {"gpuTypes": [gpu]}}))
    assert [row.native_price for row in listings] == [Decimal("2.69")]
    assert [reject.reason for reject in rejects] == ["placeholder_suspected"]


@pytest.mark.parametrize(
    ("label", "gpu_id"),
    [
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA L40", "l40"),
        ("NVIDIA L4", "l4"),
        ("RTX PRO 6000", "rtx-pro-6000"),
        ("RTX 6000 Ada", "rtx-6000-ada"),
        ("RTX A6000", "rtx-a6000"),
        ("GH200", "gh200-96gb"),
        ("H200", "h200-141gb"),
        ("RTX A4000", "rtx-a4000"),
        ("A40", "a40"),
    ],
)
def test_a_card_is_never_its_neighbour(label: str, gpu_id: str) -> None:
    (offer,) = built(listing(raw_label=label, native_price=Decimal("1.00"))).offers
    assert offer.gpu_id == gpu_id


def test_a_name_that_several_cards_have_stays_open() -> None:
    (offer,) = built(listing(raw_label="RTX 6000")).offers
    assert (offer.gpu_id, offer.match_status) == (None, "ambiguous")


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("p5.48xlarge", "instance_type"),
        ("Standard_ND96isr_H100_v5", "instance_type"),
        ("8x H100 SXM", "gpu_name"),
    ],
)
def test_twelve_gpus_in_a_machine_of_eight_are_not_believed(label: str, kind: Any) -> None:
    """The label says eight; without such a label, offers_latest says impossible_machine."""
    twelve = listing(raw_label=label, label_kind=kind, gpu_count=12)
    (offer,) = build_offers([twelve], source_config("aws" if label.startswith("p5") else "azure")).offers
    assert (offer.gpu_id, offer.match_status) == (None, "ambiguous")


def test_windows_is_not_sold_as_linux() -> None:
    content = json.loads(page("azure", "page_1.json"))
    for item in content["Items"]:
        item["productName"] = f"{item.get('productName', '')} Windows"
    listings, rejects = read("azure", answer(content))
    assert listings == []
    assert "not_linux" in {reject.reason for reject in rejects}


def test_flex_start_and_commitments_are_not_on_demand() -> None:
    rows = """<table><tr><th>GPU</th><th>Machine type</th><th>CUD 3 Year</th><th>DWS Flex-start price</th>
      <th>Price (USD)*</th><th>Components</th></tr><tr><td>Nvidia H100</td><td>a3-highgpu-8g</td>
      <td>$38.86 / 1 hour</td><td>$40 / 1 hour</td><td>N/A</td><td>GPUs: 8 vCPUs: 208</td></tr></table>"""
    listings, rejects = read("gcp", answer(rows))
    assert [(row.price_kind, row.term_days) for row in listings] == [("reserved", 1095), ("flex_start", None)]
    assert {reject.reason for reject in rejects} == {"not_offered"}


def test_contact_sales_does_not_shift_the_next_price() -> None:
    found = reading("crusoe", "pricing.html", (r"<p>\$4\.29/GPU-hr</p>", "<p>Contact sales</p>"))
    prices = {offer.gpu_id: offer.native_price for offer in found.offers}
    assert "h200-sxm-141gb" not in prices
    assert prices["h100-sxm-80gb"] == Decimal("3.90")
    assert prices["a100-sxm-80gb"] == Decimal("2.30")


def test_a_missing_price_cell_shifts_nothing() -> None:
    cell = r'<div class="pricing-rich w-richtext"><p>\$4\.29/GPU-hr</p></div>'
    try:
        found = reading("crusoe", "pricing.html", (cell, ""))
    except SourceChangedError:
        return
    prices = {offer.gpu_id: (offer.price_kind, offer.native_price) for offer in found.offers}
    assert "h200-sxm-141gb" not in prices
    assert prices["h100-sxm-80gb"] == ("on_demand", Decimal("3.90"))


@pytest.mark.parametrize("term", ["Pay as you go", "7-30 days", "31-90 days", "91-180 days"])
def test_a_missing_header_shifts_no_price(term: str) -> None:
    """The second of two header rows loses a cell: the prices below it still have theirs."""
    with pytest.raises(SourceChangedError, match="expected one column"):
        reading("together", "pricing.html", (rf"<th(?:(?!</th>).)*{term}(?:(?!</th>).)*</th>", ""))


def test_no_old_price_is_stamped_as_fresh(tmp_path: Path) -> None:
    """A day without an answer has no new offers; the last ones keep the time at which they were observed."""
    home, records = Home(tmp_path), Records(Home(tmp_path))
    seen = answer(page("crusoe", "pricing.html"))
    recorded("crusoe", home, seen)
    failed = recorded("crusoe", home, day=DAY.replace(day=DAY.day + 1), error="http_403: no")
    assert not failed.accepted
    assert records.accepted_days("crusoe") == [DAY]
    assert {offer.observed_at for offer in records.offers("crusoe", DAY)} == {seen.observed_at}


def test_euros_are_not_dollars() -> None:
    found = reading("crusoe", "pricing.html", (r"\$(\d)", r"€\1"))
    assert not found.offers
    assert RejectReason.UNEXPECTED_CURRENCY in {reject.reason for reject in found.rejects}
    euro = listing(native_currency="EUR")
    (without,) = built(euro, source="scaleway").offers
    assert (without.usd_per_hour, without.native_price) == (None, Decimal("2.50"))
    (converted,) = built(euro, rates={"EUR": Rate(Decimal("1.20"), DAY)}, source="scaleway").offers
    assert (converted.usd_per_hour, converted.fx_rate) == (Decimal("3.00000000"), Decimal("1.20"))


def test_a_misread_exchange_rate_is_not_kept(tmp_path: Path) -> None:
    """Euros for a tenth of what they cost would make every European price the cheapest."""
    home, records = Home(tmp_path), Records(Home(tmp_path))
    seen = page("ecb", "eurofxref-daily.xml")
    assert recorded("ecb", home, answer(seen)).accepted
    kept = records.usd_rates(DAY)
    gbp = re.search(r"currency='GBP' rate='([\d.]+)'", seen)
    assert gbp
    misread = seen.replace(gbp[0], f"currency='GBP' rate='{Decimal(gbp[1]) * 10}'")
    after = DAY.replace(day=DAY.day + 1)
    outcome = recorded("ecb", home, answer(misread), day=after)
    assert not outcome.accepted
    assert "one GBP went from" in (outcome.error or "")
    assert records.usd_rates(after) == kept


@pytest.mark.parametrize("body", ["", "<x>", "{}", "\x00", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"])
def test_rates_that_cannot_be_read_fail_with_a_reason(body: str, tmp_path: Path) -> None:
    outcome = recorded("ecb", Home(tmp_path), answer(body))
    assert not outcome.accepted
    assert outcome.reason


@pytest.mark.parametrize(
    ("unit", "price", "count", "per_gpu"),
    [
        ("instance_hour", "20.00", 8, "2.5"),
        ("gpu_hour", "2.50", 8, "2.5"),
        ("gpu_second", "0.0007", 1, "2.52"),
        ("instance_month", "14600", 8, "2.5"),
    ],
)
def test_a_price_is_never_off_by_the_number_of_gpus(unit: Any, price: str, count: int, per_gpu: str) -> None:
    (offer,) = built(listing(native_unit=unit, native_price=Decimal(price), gpu_count=count)).offers
    assert offer.usd_per_gpu_hour == Decimal(per_gpu)
    assert offer.usd_per_hour == Decimal(per_gpu) * count


@pytest.mark.parametrize(
    "changes",
    [
        {"native_price": Decimal("25")},
        {"native_price": Decimal("0.2")},
        {"native_price": Decimal("-1")},
        {"native_price": Decimal("1e15"), "native_currency": "JPY"},
        {"native_price": Decimal("1e-12"), "native_currency": "JPY"},
        {"gpu_count": 0},
        {"gpu_count": float("nan")},
        {"native_unit": "instance_term"},
        {"native_unit": "gpu_fortnight"},
        {"native_currency": "$"},
        {"term_days": 2**40},
        {"ram_gib": float("inf")},
    ],
    ids=lambda changes: ", ".join(f"{name} {value}" for name, value in changes.items()),
)
def test_an_impossible_price_is_a_reject_and_spoils_no_other(changes: dict[str, Any]) -> None:
    found = built(listing(raw_label="L40S"), replace(listing(), **changes))
    assert [offer.raw_label for offer in found.offers] == ["L40S"]
    assert len(found.rejects) == 1


@pytest.mark.parametrize(
    "broken", ["null", "[]", '{"data": [null]}', '{"data": "x"}', '{"data": [{"gpus": {}}]}']
)
@pytest.mark.parametrize("source", ["linode", "cudo", "voltagepark", "oci", "vultr", "verda", "runpod"])
def test_an_answer_of_another_shape_fails_its_source_with_a_reason(
    source: str, broken: str, tmp_path: Path
) -> None:
    outcome = recorded(source, Home(tmp_path), answer(broken))
    assert not outcome.accepted
    assert outcome.error or outcome.reason == "no offers were read"
    assert Records(Home(tmp_path)).accepted_days(source) == []


def test_a_reader_that_breaks_fails_only_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.sources import linode

    def breaks(*_: object) -> None:
        raise AttributeError("'str' object has no attribute 'get'")

    read_as_ever: Callable[..., Any] = linode.read
    monkeypatch.setattr(linode, "read", breaks)
    types = answer(page("linode", "types.json"))
    outcome = recorded("linode", Home(tmp_path), types)
    assert "the linode reader does not understand the answer (AttributeError" in (outcome.error or "")
    monkeypatch.setattr(linode, "read", read_as_ever)
    assert recorded("linode", Home(tmp_path), types).accepted
