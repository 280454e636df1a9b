"""Together: the cluster table among its hidden copy and the look-alike of another product."""

from tests.sources.edited_pages import edited, outcome
from tests.sources.helpers import page

NAME = "pricing.html"
PAGE = page("together", NAME)
PRICES = "raw_label price_kind term_days native_price"


def test_only_the_visible_cluster_table_is_read() -> None:
    usual = outcome("together", PAGE, columns=PRICES)
    assert (len(usual), usual[-23:]) == (36, ["not_offered"] * 23)
    body = PAGE[PAGE.index("<body>") + 6 : PAGE.index("</body>")].replace("$3.99", "$9.99")
    copies = [
        ('<div class="hide"><div class="u-mb-64">', '<div hidden><div class="u-mb-64">'),
        ("</body>", f'<div style="display: none">{body}</div></body>'),
    ]
    for copy in copies:
        assert outcome("together", edited("together", NAME, copy), columns=PRICES) == usual
    shown = outcome("together", edited("together", NAME, ('class="hide"', "")))
    assert shown == ["changed: expected exactly one visible GPU cluster table, found 2"]


def test_another_shape_fails_the_source() -> None:
    edits = [('id="gpu-clusters"', 'id="clusters"')], [("Pay as you go", "Hourly"), ("ON-Demand", "Rate")]
    for body in (
        *(edited("together", NAME, *changes) for changes in edits),
        edited("together", NAME, ("Hardware", "Product")),
        PAGE[: PAGE.index("On-demand hourly rates")],
    ):
        (found,) = outcome("together", body)
        assert found.startswith("changed: "), body
