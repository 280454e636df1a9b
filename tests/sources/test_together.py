"""Together: the cluster table among its hidden copy and the look-alike of another product."""

from tests.sources.edited_pages import edited, outcome
from tests.sources.helpers import page

NAME = "pricing.html"
PAGE = page("together", NAME)
H100 = "NVIDIA HGX H100"
PRICES = "raw_label price_kind term_days native_price"


def section(*rows: list[str]) -> str:
    """A page with nothing but a cluster table."""
    cells = ["".join(f"<td>{text}</td>" for text in row) for row in rows]
    table = "".join(f"<tr>{row}</tr>" for row in cells).replace("td>", "th>", 2 * len(rows[0]))
    return f'<div id="gpu-clusters"></div><table>{table}</table><div id="sandbox"></div>'


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
    headers = ["Hardware", "On-Demand", "On-Demand (new)"]
    edits = [('id="gpu-clusters"', 'id="clusters"')], [("Pay as you go", "Hourly"), ("ON-Demand", "Rate")]
    for body in (
        *(edited("together", NAME, *changes) for changes in edits),
        edited("together", NAME, ("Hardware", "Product")),
        section(headers, [H100, "$3.99", "$4.99"]),
        PAGE[: PAGE.index("On-demand hourly rates")],
    ):
        (found,) = outcome("together", body)
        assert found.startswith("changed: "), body
    assert outcome("together", section(headers[:2])) == ["changed: the GPU cluster table has no rows"]
