"""Lambda: tables told apart by their columns and tabs, sizes in any unit, dated prices, and the API."""

import re
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from tests.sources.edited_pages import at_six, changed, edited, outcome
from tests.sources.helpers import answer, contradicted, page, read

NAME = "pricing.html"
PAGE = page("lambda", NAME)
INSTANCES_URL = "https://lambda.ai/instances"
INSTANCES = PAGE[: PAGE.index("<section><h2>1-Click")] + PAGE[PAGE.index('<section><h2 id="instances">') :]
"""The pricing page without its cluster tables, as /instances is."""

GH200_ROW = (
    PAGE[PAGE.rindex("<tr", 0, PAGE.index('data-plan="NVIDIA GH200"')) :].partition("</tr>")[0] + "</tr>"
)
GH200 = ("NVIDIA GH200", "2.29")
PRICE = '<td data-label="PRICE/GPU/HR*">$2.29</td>'
NOTICE = "<p>Listed rates take effect on November 16, {}.</p><h2"


def of_gh200(*answers: Any, columns: str) -> list[Any]:
    """Those columns of the GH200's prices in answers."""
    found = outcome("lambda", *answers, columns=f"raw_label {columns}")
    return [row[1:] for row in found if row[0] == "NVIDIA GH200"]


def test_rates_announced_for_later_carry_their_day() -> None:
    days = [("2026", date(2026, 11, 16)), ("2025", None)]
    for year, day in days:
        found = outcome(
            "lambda", edited("lambda", NAME, ("<h2", NOTICE.format(year))), columns="effective_from"
        )
        assert set(found) == {day, "not_offered"}
    several = NOTICE.format("2026").replace("<h2", "<p>Others are effective 2026-12-01.</p><h2")
    found = outcome("lambda", edited("lambda", NAME, ("<h2", several)), columns="effective_from flag_reason")
    assert set(found[:-2]) == {(date(2026, 12, 1), "several_effective_dates")}


def test_a_second_price_column_with_a_date() -> None:
    later = GH200_ROW.replace("</tr>", PRICE.replace("HR*", "HR* (effective 2026-11-16)") + "</tr>")
    cases = of_gh200(edited("lambda", NAME, (GH200_ROW, later)), columns="native_price effective_from")
    assert cases == [("2.29", None), ("2.29", date(2026, 11, 16))]
    for header in ("PRICE/GPU/HR* from 1 January", "New price/GPU/hr (effective January 1, 2027)"):
        cell = rf'\1\2</td><td data-label="{header}">$3.29</td></tr>'
        both = re.sub(r'(<td data-label="PRICE/GPU/HR\*">\$)([\d.]+)</td></tr>', cell, PAGE)
        both = both.replace("<h2", f"<p>{header}</p><h2", 1)
        for day, flag in ((date(2026, 11, 22), None), (date(2027, 1, 5), "superseded")):
            read_on_day = answer(both, observed_at=at_six(day))
            found = of_gh200(read_on_day, columns="native_price effective_from flag_reason")
            assert found == [("2.29", None, flag), ("3.29", date(2027, 1, 1), None)]


def test_a_price_that_ends_is_not_dated_by_a_sentence_about_the_next_one() -> None:
    ending = ("PRICE/GPU/HR*", "PRICE/GPU/HR* (until December 31, 2026)"), ("<h2", NOTICE.format("2026"))
    found = outcome("lambda", edited("lambda", NAME, *ending), columns="effective_from")
    assert set(found) == {None, "not_offered"}


# --- the API ---


OFFERED: dict[str, Any] = {
    "instance_type": {
        "name": "gpu_8x_h100_sxm5",
        "gpu_description": "H100 (80 GB SXM5)",
        "price_cents_per_hour": 3192,
        "specs": {"vcpus": 208, "memory_gib": 1800, "storage_gib": 22528, "gpus": 8},
    }
}


def test_the_api_gives_whole_instances_in_cents() -> None:
    (row,), _ = read("lambda", answer({"data": {"gpu_8x_h100_sxm5": OFFERED}}))
    assert (row.instance_type, row.gpu_count, row.native_unit) == ("gpu_8x_h100_sxm5", 8, "instance_hour")
    assert (row.native_price, row.ram_gib, row.available) == (Decimal("31.92"), 1800, None)
    assert (row.label_kind, row.context) == ("instance_type", {"gpu_name": "H100 (80 GB SXM5)"})
    assert (row.vcpus, row.local_disk_gb) == (208, pytest.approx(22 * 2**40 / 10**9))


def test_one_unreadable_instance_type_leaves_the_others() -> None:
    for body in ({"data": {"a": OFFERED, "b": "?"}}, [OFFERED, "?"]):
        assert outcome("lambda", body) == [("gpu_8x_h100_sxm5", "31.92"), "unreadable_row"]


def test_if_the_api_answered_the_page_gives_only_its_clusters() -> None:
    gh200 = changed(OFFERED, {"instance_type.name": "gpu_1x_gh200", "instance_type.specs": {"gpus": 1}})
    found = outcome("lambda", PAGE, {"data": {"gpu_1x_gh200": gh200}}, columns="tier")
    assert found == ["cluster"] * 6 + [None] + ["not_offered"] * 2


# --- two pages ---


def test_a_page_that_repeats_another_adds_nothing_but_other_prices() -> None:
    usual, repeated = outcome("lambda", PAGE), answer(INSTANCES, INSTANCES_URL)
    assert outcome("lambda", PAGE, repeated) == usual
    assert outcome("lambda", repeated) == usual[6:-2]
    dearer = answer(INSTANCES.replace("$2.29", "$2.49"), INSTANCES_URL)
    assert of_gh200(PAGE, dearer, columns="native_price") == [("2.29",), ("2.49",)]
    assert contradicted("lambda", answer(PAGE), dearer) == ["NVIDIA GH200"] * 2
    body = PAGE[PAGE.index("<body>") + 6 : PAGE.index("</body>")]
    twice = edited("lambda", NAME, ("</body>", f"<div hidden>{body}</div></body>"))
    assert outcome("lambda", twice) == usual[:-2] * 2 + ["not_offered"] * 4


def test_one_page_that_changed_leaves_the_other() -> None:
    signed_out = answer("<html><body><h1>Sign in to see prices</h1></body></html>")
    for answers in ([signed_out, answer(INSTANCES, INSTANCES_URL)], [answer(PAGE), signed_out]):
        found = outcome("lambda", *answers)
        assert (GH200 in found, found[-1]) == (True, "unreadable_answer")
