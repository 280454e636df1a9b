"""Modal's line items: a GPU gets the price that follows it, or none."""

from tests.sources.edited_pages import each, edited, misread, misread_edits, outcome
from tests.sources.helpers import answer, contradicted

NAME = "pricing.html"
H100 = '<p class="x">Nvidia H100</p><p class="price">$0.001097 <span>/ sec</span></p>'
PRICED = ("Nvidia H100", "0.001097", "gpu_second", "USD")
COLUMNS = "raw_label native_price native_unit native_currency"


def test_a_gpu_has_the_price_that_follows_it_or_none() -> None:
    others = {
        "unreadable_price": ["₹0.001 / sec", "0.001 / sec", "A$0.001 / sec"],
        "unknown_unit": ["$0.001 / core / sec", "$29 / month"],
        "zero_price": ["$0.000000 / sec"],
        "not_offered": ["Contact sales", "—"],
    }
    glued = ["Nvidia H100 A$0.001 / sec", "Nvidia H100 80 GB$2 .50/hr", "Nvidia H100reserved$0.001 / sec"]
    cells = ["$ 0.001097 / sec", "$0.001097/second", "$0.001097 per sec"]
    per_hour = ("Nvidia H100", "3.95", "gpu_hour", "USD")
    cases = [
        *each([f"<p>Nvidia H100</p><p>{cell}</p>" for cell in cells], PRICED),
        *each(["<li>Nvidia H100 $0.001097 / sec</li>", "<b>Nvidia H100</b> <b>$0.001097 / sec</b>"], PRICED),
        ("<p>Nvidia H100</p><p>$3.95<sup>2</sup> / hr</p>", [per_hour]),
        ("<p>Nvidia H100</p><p>$3.95 / h</p>", [per_hour]),
        ("<p>Nvidia H100</p><p>€0.001 / sec</p>", [("Nvidia H100", "0.001", "gpu_second", "EUR")]),
        *[(f"<p>Nvidia H100</p><p>{cell}</p>", [why]) for why, texts in others.items() for cell in texts],
        *each([f"<p>{text}</p>" for text in glued], "unreadable_price"),
        ("<p>Nvidia H100</p>", []),
    ]
    assert not misread_edits("modal", NAME, H100, [PRICED], cases, COLUMNS)
    # The last GPU does not take the price of the CPUs.
    contact = '<p class="price">Contact us</p>'
    assert not misread_edits("modal", NAME, contact, ["not_offered"], [("", [])])


def test_a_row_that_names_no_vendor_is_a_reject() -> None:
    row = '<div class="line-item">{}<p class="price">$0.001 <span>/ sec</span></p></div>'.format
    cases = [
        *[(f"<p>{label}</p>", [(label, "0.001")]) for label in ("NVIDIA® L40S", "AMD Instinct MI300X")],
        *each(["<p>H100</p>", "<p>RTX 6000, 48 GB memory</p>"], "unreadable_row"),
        ("<span>Nvidia</span> <b>A100, 40 GB</b>", ["unreadable_row"]),
        *each(
            [f"<p>{label}</p>" for label in ("Physical core", "Memory", "Volume storage", "2 vCPUs", "RAM")],
            "changed: no GPU with a price per second",
        ),
    ]
    assert not misread("modal", row, cases)


def test_limits_and_plans_are_not_gpus() -> None:
    rows = ["<p>Calls</p><p>100 / second</p></body>", "<p>Team</p><p>$250 / month</p></body>"]
    assert not misread_edits("modal", NAME, "</body>", [], each(rows))


def test_a_gpu_at_two_prices_is_flagged() -> None:
    second = H100.replace("0.001097", "0.003291")
    twice = answer(edited("modal", NAME, ("</body>", second + "</body>")))
    assert contradicted("modal", twice) == ["Nvidia H100"] * 2


def test_a_page_without_prices_fails_the_source() -> None:
    assert outcome("modal", "<p>Nvidia H100</p>") == ["changed: no GPU with a price per second"]
