"""Modal's line items: a GPU gets the price that follows it, or none."""

from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.helpers import answer, contradicted, page, read

PAGE = page("modal", "pricing.html")
H100 = '<p class="x">Nvidia H100</p><p class="price">$0.001097 <span>/ sec</span></p>'


def prices(html: str) -> dict[str, Decimal]:
    listings, _ = read("modal", answer(html))
    return {listing.raw_label: listing.native_price for listing in listings}


def test_scripts_navigation_cpu_and_memory_give_no_offer() -> None:
    listings, rejects = read("modal", answer(PAGE))
    assert len(listings) == 10
    assert [(reject.reason, reject.detail[:12]) for reject in rejects] == [("not_offered", "Nvidia GB300")]
    h100 = next(row for row in listings if row.raw_label == "Nvidia H100")
    assert (h100.native_price, h100.native_unit, h100.price_kind) == (
        Decimal("0.001097"),
        "gpu_second",
        "serverless",
    )


def test_missing_price_is_never_the_next_rows_price() -> None:
    for instead in ("", "<p>Contact sales</p>", "<p>—</p>"):
        found = prices(PAGE.replace(H100, f'<p class="x">Nvidia H100</p>{instead}'))
        assert "Nvidia H100" not in found
        assert found["Nvidia RTX PRO 6000"] == Decimal("0.000842")
        assert len(found) == 9


def test_label_and_price_may_stand_in_one_text() -> None:
    assert prices("<li>Nvidia H100 $0.001097 / sec</li><li>Nvidia T4 $0.000164 / sec</li>") == {
        "Nvidia H100": Decimal("0.001097"),
        "Nvidia T4": Decimal("0.000164"),
    }


def test_last_gpu_without_a_price_does_not_take_the_cpus() -> None:
    found = prices(PAGE.replace('<p class="price">Contact us</p>', ""))
    assert "Nvidia GB300" not in found


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("$ 0.001097 / sec", ("0.001097", "gpu_second")),
        ("$0.001097/second", ("0.001097", "gpu_second")),
        ("$0.001097 per sec", ("0.001097", "gpu_second")),
        ("$3.95 / h", ("3.95", "gpu_hour")),
        ("$3.95<sup>2</sup> / hr", ("3.95", "gpu_hour")),
    ],
)
def test_spellings_of_a_price_and_its_unit(cell: str, expected: tuple[str, str]) -> None:
    listings, _ = read("modal", answer(PAGE.replace(H100, f"<b>Nvidia H100 SXM5</b><b>{cell}</b>")))
    (h100,) = (row for row in listings if row.raw_label == "Nvidia H100 SXM5")
    assert (str(h100.native_price), h100.native_unit) == expected


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("₹0.001 / sec", "unreadable_price"),
        ("$0.001 / core / sec", "unknown_unit"),
        ("$29 / month", "unknown_unit"),
        ("$0.000000 / sec", "zero_price"),
        ("0.001 / sec", "unreadable_price"),
        ("A$0.001 / sec", "unreadable_price"),
    ],
)
def test_other_currencies_and_units_are_rejects(cell: str, reason: str) -> None:
    listings, rejects = read("modal", answer(PAGE.replace(H100, f"<p>Nvidia H100</p><p>{cell}</p>")))
    assert len(listings) == 9
    assert {reject.reason for reject in rejects} == {"not_offered", reason}


@pytest.mark.parametrize(
    "glued", ["Nvidia H100 A$0.001 / sec", "Nvidia H100 80 GB$2 .50/hr", "Nvidia H100reserved$0.001 / sec"]
)
def test_a_price_that_letters_are_glued_to_is_a_reject(glued: str) -> None:
    listings, rejects = read("modal", answer(PAGE.replace(H100, f"<p>{glued}</p>")))
    assert len(listings) == 9
    assert {reject.reason for reject in rejects} == {"not_offered", "unreadable_price"}


def test_rows_that_name_no_vendor_are_rejects() -> None:
    row = '<div class="line-item">{}<p class="price">$0.001 <span>/ sec</span></p></div>'
    named, others = ["NVIDIA® L40S", "AMD Instinct MI300X"], ["Physical core", "Memory", "Volume storage"]
    unnamed = ["H100", "RTX 6000, 48 GB memory", "A100, 40 GB"]
    labels = [f"<p>{label}</p>" for label in (*named, *others, *unnamed[:2])]
    labels.append(f"<span>Nvidia</span> <b>{unnamed[2]}</b>")
    listings, rejects = read("modal", answer("".join(map(row.format, labels))))
    assert [listing.raw_label for listing in listings] == named
    assert [reject.detail.split(":")[0] for reject in rejects] == unnamed
    assert {reject.reason for reject in rejects} == {"unreadable_row"}


@pytest.mark.parametrize("row", ["<p>Calls</p><p>100 / second</p>", "<p>Team</p><p>$250 / month</p>"])
def test_limits_and_plans_are_not_gpus(row: str) -> None:
    listings, rejects = read("modal", answer(PAGE.replace("</body>", f"{row}</body>")))
    assert len(listings) == 10
    assert [reject.reason for reject in rejects] == ["not_offered"]


def test_euros_are_euros() -> None:
    listings, _ = read("modal", answer("<p>Nvidia H100</p><p>€0.001 / sec</p>"))
    assert [(str(row.native_price), row.native_currency) for row in listings] == [("0.001", "EUR")]


def test_a_gpu_at_two_prices_is_flagged() -> None:
    second = H100.replace("0.001097", "0.003291")
    assert contradicted("modal", answer(PAGE.replace("</body>", second + "</body>"))) == ["Nvidia H100"] * 2


@pytest.mark.parametrize("body", ["<p>Nvidia H100</p>"])
def test_page_without_prices_fails_the_source(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("modal", answer(body))
