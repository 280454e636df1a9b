import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from pipeline.capture.visit import first_requests
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Listing, Reject, SourceChangedError
from pipeline.refresh.ingest import read_answers
from pipeline.sources import source_module
from tests.capture.site import Reply, Site
from tests.sources.helpers import answer, page, read, sample
from tests.sources.loopback import visit


@pytest.fixture
def html():
    return page("lambda", "pricing.html")


def short(listings):
    return [
        (row.raw_label, row.gpu_count, row.price_kind, row.term_days, str(row.native_price))
        for row in listings
    ]


def instance_row(html, plan="NVIDIA GH200"):
    start = html.rindex("<tr", 0, html.index(f'data-plan="{plan}"'))
    return html[start : html.index("</tr>", start) + 5]


def test_the_cluster_tabs_alone():
    listings, rejects = read("lambda", answer(sample("lambda_clusters_2026-08-22.html")))
    assert short(listings) == [
        ("NVIDIA HGX B200", 16, "reserved", 14, "9.86"),
        ("NVIDIA HGX B200", 64, "reserved", 14, "9.36"),
        ("NVIDIA HGX B200", 256, "reserved", 14, "8.87"),
        ("NVIDIA H100", 16, "reserved", 14, "6.16"),
        ("NVIDIA H100", 64, "reserved", 14, "5.85"),
        ("NVIDIA H100", 256, "reserved", 14, "5.54"),
    ]
    assert [r.reason for r in rejects] == ["not_offered", "not_offered"]
    assert {row.tier for row in listings} == {"cluster"}


def test_an_instance_carries_its_machine(html):
    listings, _ = read("lambda", answer(html))
    (gh200,) = [row for row in listings if row.raw_label == "NVIDIA GH200"]
    assert (gh200.vcpus, gh200.ram_gib, gh200.context) == (64, 432, {"vram_gb": 96})
    assert gh200.local_disk_gb == pytest.approx(4 * 2**40 / 10**9)
    assert (gh200.tier, gh200.term_days, gh200.effective_from) == (None, None, None)


def test_moved_columns_and_other_spellings(html):
    row = instance_row(html)
    price = '<td data-label="PRICE/GPU/HR*">$2.29</td>'
    moved = row.replace(price, "").replace(
        '<td data-label="VRAM/GPU">',
        '<td data-label="Price / GPU / hour">from $ 2.29 /hr<sup>1</sup></td><td data-label="GPU memory">',
    )
    listings, _ = read("lambda", answer(html.replace(row, moved)))
    (gh200,) = [row for row in listings if row.raw_label == "NVIDIA GH200"]
    assert (str(gh200.native_price), gh200.context, gh200.vcpus) == ("2.29", {"vram_gb": 96}, 64)


def test_without_data_labels_the_headers_name_the_columns(html):
    for label in ("VRAM/GPU", "vCPUs", "RAM", "STORAGE", "PRICE/GPU/HR*"):
        html = html.replace(f' data-label="{label}"', "")
    listings, _ = read("lambda", answer(html))
    assert len(listings) == 28
    assert ("NVIDIA GH200", 1, "on_demand", None, "2.29") in short(listings)


@pytest.mark.parametrize("shown", ["Contact sales", "—", "––", "N/A", "", "Sold out", "&nbsp;"])
def test_a_row_without_a_price_shifts_nothing(html, shown):
    row = instance_row(html)
    listings, rejects = read("lambda", answer(html.replace(row, row.replace("$2.29", shown))))
    assert len(listings) == 27
    assert "NVIDIA GH200" not in {listing.raw_label for listing in listings}
    assert [r.reason for r in rejects] == ["not_offered"] * 3
    assert ("NVIDIA H100 SXM", 1, "on_demand", None, "4.29") in short(listings)


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ("$0.00", "zero_price"),
        ("$2.29 /mo", "unreadable_price"),
        ("$2.29 $2.49", "unreadable_price"),
    ],
)
def test_prices_not_in_dollars_per_hour_are_refused(html, shown, reason):
    row = instance_row(html)
    listings, rejects = read("lambda", answer(html.replace(row, row.replace("$2.29", shown))))
    assert len(listings) == 27
    assert rejects[-1].reason == reason


def test_a_page_in_euros_stays_in_euros(html):
    listings, _ = read("lambda", answer(html.replace("$", "€")))
    assert {row.native_currency for row in listings} == {"EUR"}
    assert len(listings) == 28


def test_rates_announced_for_later_carry_their_day(html):
    notice = "<p>Listed rates take effect on November 16, 2026.</p><h2"
    listings, _ = read("lambda", answer(html.replace("<h2", notice, 1)))
    assert {row.effective_from for row in listings} == {date(2026, 11, 16)}
    past = notice.replace("2026", "2025")
    listings, _ = read("lambda", answer(html.replace("<h2", past, 1)))
    assert {row.effective_from for row in listings} == {None}


def test_a_second_price_column_with_a_date(html):
    row = instance_row(html)
    later = row.replace("</tr>", '<td data-label="PRICE/GPU/HR* (effective 2026-11-16)">$2.49</td></tr>')
    listings, _ = read("lambda", answer(html.replace(row, later)))
    found = [(str(x.native_price), x.effective_from) for x in listings if x.raw_label == "NVIDIA GH200"]
    assert found == [("2.29", None), ("2.49", date(2026, 11, 16))]


def with_second_column(html, header):
    """The page with a second price, a dollar higher, in every instance row."""
    return re.sub(
        r'(<td data-label="PRICE/GPU/HR\*">\$)([\d.]+)</td></tr>',
        lambda m: f'{m[1]}{m[2]}</td><td data-label="{header}">${Decimal(m[2]) + 1}</td></tr>',
        html,
    )


@pytest.mark.parametrize(
    "header", ["PRICE/GPU/HR* from 1 January", "New price/GPU/hr (effective January 1, 2027)"]
)
def test_a_price_column_for_the_new_year_leaves_one_price_for_each_day(html, header):
    html = with_second_column(html, header).replace("<h2", f"<p>{header}</p><h2", 1)
    now, later = datetime(2026, 11, 22, tzinfo=UTC), datetime(2027, 1, 5, tzinfo=UTC)
    for observed_at, flags in ((now, [None, None]), (later, ["superseded", None])):
        listings, _ = read("lambda", answer(html, observed_at=observed_at))
        found = [row for row in listings if row.raw_label == "NVIDIA GH200"]
        assert [str(row.native_price) for row in found] == ["2.29", "3.29"]
        assert [row.effective_from for row in found] == [None, date(2027, 1, 1)]
        assert [row.flag_reason for row in found] == flags


@pytest.mark.parametrize(
    "header", ["PRICE/GPU/HR* (new)", "PRICE/GPU/HR* (effective soon)", "PRICE/GPU/HR* (2027)"]
)
def test_two_unexplained_price_columns_fail_the_page(html, header):
    row = instance_row(html)
    later = row.replace("</tr>", f'<td data-label="{header}">$2.49</td></tr>')
    with pytest.raises(SourceChangedError):
        read("lambda", answer(html.replace(row, later)))


def test_a_price_that_ends_is_not_dated_by_a_sentence_about_the_next_one(html):
    ending = html.replace("PRICE/GPU/HR*", "PRICE/GPU/HR* (until December 31, 2026)")
    announced = ending.replace("<h2", "<p>New prices take effect on October 1, 2026.</p><h2", 1)
    listings, _ = read("lambda", answer(announced))
    assert {row.effective_from for row in listings} == {None}


def test_durations(html):
    other = html.replace("2 weeks – 1 year", "On-demand", 1).replace("2 weeks – 1 year", "3 months", 1)
    listings, _ = read("lambda", answer(other.replace("2 weeks – 1 year", "by arrangement", 1)))
    assert short(listings)[:2] == [
        ("NVIDIA HGX B200", 16, "on_demand", None, "9.86"),
        ("NVIDIA HGX B200", 64, "reserved", 90, "9.36"),
    ]
    assert len(listings) == 27


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("data-plan=", "data-name="),
        ('data-label="DURATION"', 'data-label="WINDOW"'),
        ('data-label="GPU COUNT"', 'data-label="SIZE"'),
        ('data-label="PRICE/GPU/HR*"', 'data-label="PRICE/NODE/HR*"'),
        (">4x<", ">Four<"),
        ('data-label="RAM"', 'data-label="vCPUs"'),
    ],
)
def test_unknown_columns_and_tabs_fail_clearly(html, old, new):
    with pytest.raises(SourceChangedError):
        read("lambda", answer(html.replace(old, new)))


def api(**types):
    return answer(
        {"data": {name: {"instance_type": {"name": name, **fields}} for name, fields in types.items()}}
    )


def test_the_api_gives_whole_instances_in_cents():
    eight = {
        "gpu_description": "H100 (80 GB SXM5)",
        "price_cents_per_hour": 3192,
        "specs": {"vcpus": 208, "memory_gib": 1800, "storage_gib": 22528, "gpus": 8},
    }
    cpu = {"price_cents_per_hour": 20, "specs": {"vcpus": 4, "gpus": 0}}
    free = {"price_cents_per_hour": 0, "specs": {"gpus": 1}}
    listings, rejects = read("lambda", api(gpu_8x_h100_sxm5=eight, cpu_4x_general=cpu, gpu_1x_a10=free))
    (row,) = listings
    assert (row.instance_type, row.gpu_count, row.native_unit) == ("gpu_8x_h100_sxm5", 8, "instance_hour")
    assert (str(row.native_price), row.ram_gib, row.available) == ("31.92", 1800, None)
    assert (row.label_kind, row.context) == ("instance_type", {"gpu_name": "H100 (80 GB SXM5)"})
    assert (row.vcpus, row.local_disk_gb) == (208, pytest.approx(22 * 2**40 / 10**9))
    assert [r.reason for r in rejects] == ["zero_price"]


@pytest.mark.parametrize(("regions", "available"), [([{"name": "us-east-1"}], True), ([], False)])
def test_the_api_gives_regions_with_capacity(regions, available):
    instance = {"name": "gpu_1x_gh200", "price_cents_per_hour": 229, "specs": {"gpus": 1}}
    offered = {"instance_type": instance, "regions_with_capacity_available": regions}
    listings, _ = read("lambda", answer({"data": {"gpu_1x_gh200": offered}}))
    assert [row.available for row in listings] == [available]


def test_if_the_api_answered_the_page_gives_only_its_clusters(html):
    one = {"price_cents_per_hour": 229, "specs": {"gpus": 1}}
    listings, _ = read("lambda", answer(html), api(gpu_1x_gh200=one))
    assert [row.tier for row in listings] == ["cluster"] * 6 + [None]


def test_the_api_is_asked_with_a_key_only():
    config = source_config("lambda")
    assert [request.optional for request in first_requests(config, source_module("lambda"), {})] == [
        False,
        True,
    ]
    asked = first_requests(config, source_module("lambda"), {"LAMBDA_API_KEY": "secret-of-the-test"})[2]
    assert asked.headers == {"authorization": "Bearer ${LAMBDA_API_KEY}"}


def test_a_second_copy_of_the_tabs_changes_nothing():
    html = page("lambda", "pricing.html")
    body = html[html.index("<body>") + 6 : html.index("</body>")]
    usual, _ = read("lambda", answer(html))
    twice, _ = read("lambda", answer(html.replace("</body>", f"<div hidden>{body}</div></body>")))
    short = [(row.raw_label, row.gpu_count, row.native_price) for row in usual]
    assert [(row.raw_label, row.gpu_count, row.native_price) for row in twice] == short * 2


def test_one_unreadable_instance_type_leaves_the_others():
    instance = {"name": "gpu_1x_gh200", "price_cents_per_hour": 229, "specs": {"gpus": 1}}
    for body in ({"data": {"a": {"instance_type": instance}, "b": "?"}}, [{"instance_type": instance}, "?"]):
        listings, rejects = read("lambda", answer(body))
        assert [(row.raw_label, str(row.native_price)) for row in listings] == [("gpu_1x_gh200", "2.29")]
        assert [reject.reason for reject in rejects] == ["unreadable_row"]


def test_non_numeric_size_is_skipped() -> None:
    text = page("lambda", "pricing.html")
    before, _ = read("lambda", answer(text))
    changed = text.replace(">22 TiB", ">,22 TiB")
    assert changed != text
    listings, _ = read("lambda", answer(changed))
    assert len(listings) == len(before)
    assert sum(row.local_disk_gb is None for row in listings) > sum(r.local_disk_gb is None for r in before)


@pytest.mark.parametrize(
    ("memory", "disk", "gib", "gb"),
    [
        ("1,800 GiB", "1,400 GiB SSD", 1800, 1503.238553600),
        ("0.5 TiB", "2 TB", 512, 2000),
        ("480 GB", "22 TiB SSD", 447.034835815, 24189.255811072),
        ("1,80 GiB", "much", None, None),
    ],
)
def test_sizes_in_any_unit(html, memory, disk, gib, gb):
    row = instance_row(html)
    changed = re.sub(r'(data-label="RAM">)[^<]*', rf"\g<1>{memory}", row)
    changed = re.sub(r'(data-label="STORAGE">)[^<]*', rf"\g<1>{disk}", changed)
    listings, _ = read("lambda", answer(html.replace(row, changed)))
    (gh200,) = [listing for listing in listings if listing.raw_label == "NVIDIA GH200"]
    assert (gh200.ram_gib, gh200.local_disk_gb) == (gib and pytest.approx(gib), gb and pytest.approx(gb))


def test_the_tab_of_single_gpus_lists_machines_too() -> None:
    listings, _ = read("lambda", answer(page("lambda", "pricing.html")))
    assert {(row.gpu_count, row.gpu_counts) for row in listings if row.tier is None} == {
        (1, (1,)),
        (2, None),
        (4, None),
        (8, None),
    }


INSTANCES = "https://lambda.ai/instances"


def instances_page(html):
    """The pricing page without its cluster tables, as /instances is."""
    start, end = html.index("<section><h2>1-Click"), html.index('<section><h2 id="instances">')
    return html[:start] + html[end:]


def test_instances_on_two_pages_are_counted_once(html):
    alone, _ = read("lambda", answer(html))
    both, rejects = read("lambda", answer(html), answer(instances_page(html), INSTANCES))
    assert short(both) == short(alone)
    assert [r.reason for r in rejects] == ["not_offered", "not_offered"]
    only, _ = read("lambda", answer(instances_page(html), INSTANCES))
    assert short(only) == [row for row in short(alone) if row[3] is None]


def test_a_price_that_differs_between_the_pages_is_given_twice(html):
    other = instances_page(html).replace("$2.29", "$2.49")
    listings, _ = read("lambda", answer(html), answer(other, INSTANCES))
    gh200 = [row for row in listings if row.raw_label == "NVIDIA GH200"]
    assert [str(row.native_price) for row in gh200] == ["2.29", "2.49"]
    built = read_answers([answer(html), answer(other, INSTANCES)], source_config("lambda"), {})
    flags = {offer.flag_reason for offer in built.offers if offer.raw_label == "NVIDIA GH200"}
    assert flags == {"conflicting_prices"}


def test_rates_that_one_page_announces_stand_beside_those_of_today(html):
    notice = "<p>Listed rates take effect on November 16, 2026.</p><h2"
    later = instances_page(html).replace("<h2", notice, 1).replace("$2.29", "$2.49")
    listings, _ = read("lambda", answer(html), answer(later, INSTANCES))
    gh200 = [(str(r.native_price), r.effective_from) for r in listings if r.raw_label == "NVIDIA GH200"]
    assert gh200 == [("2.29", None), ("2.49", date(2026, 11, 16))]


def test_one_page_that_changed_leaves_the_other(html):
    changed = answer("<html><body><h1>Sign in to see prices</h1></body></html>")
    for answers in ([changed, answer(instances_page(html), INSTANCES)], [answer(html), changed]):
        rows = list(read_all("lambda", *answers))
        assert any(isinstance(row, Listing) for row in rows)
        assert [r.reason for r in rows if isinstance(r, Reject)][-1] == "unreadable_answer"
    with pytest.raises(SourceChangedError, match="no pricing row"):
        read("lambda", changed, changed)


def read_all(source, *answers):
    return source_module(source).read(answers, source_config(source))


@pytest.mark.parametrize("status", [200, 302, 404, 500])
def test_the_second_page_is_asked_for_and_can_be_missing(html, status, tmp_path):
    with Site() as site:
        reply = Reply(200, html.encode(), {"content-type": "text/html"})
        site.say("lambda.ai", "/pricing", reply)
        location = {"location": "https://lambda.com/instances"} if status == 302 else {}
        body = instances_page(html).encode()
        site.say("lambda.ai", "/instances", Reply(status, body, {"content-type": "text/html"} | location))
        site.say("lambda.com", "/instances", Reply(200, body, {"content-type": "text/html"}))
        captured, answers = visit("lambda", site, tmp_path)
    assert captured.status == "captured"
    assert len(answers) == (2 if status in (200, 302) else 1)
    listings, _ = read("lambda", *answers)
    assert len(listings) == 28
