"""Every threshold of the gates: its value, what it decides, why it has that value, and where that was seen.

`make docs` writes docs/explanation/price-gates.md from this file. The thresholds that compare all sources
with each other belong to SQL: the rows ``market_*`` of catalog/cost_parameters.csv.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Threshold(Generic[Value]):
    """One threshold. ``meaning`` says what it decides, ``reason`` why it has this value, and ``seen`` which
    measurement or known case that rests on, if any."""

    value: Value
    unit: str
    meaning: str
    reason: str
    seen: str = ""

    def unless(self, own: Value | None) -> Value:
        """Return a source's own value, from ``expect`` in its yaml, or the default if it has none."""
        return self.value if own is None else own


# The size of a reading

ROWS_MAX = Threshold(
    5_000,
    "offers",
    "The most offers expected of a source whose yaml has no `expect.rows_max`.",
    "It is more than the longest list of any source.",
)
FLOOD_FACTOR = Threshold(
    2,
    "times `rows_max`",
    "Reading stops and the source is refused beyond this many offers.",
    "A list may outgrow `rows_max`, which only warns; a list of twice the length is a flood.",
)
MIN_SHARE_OF_LAST_ROWS = Threshold(
    0.5,
    "of the last accepted offers",
    "A reading with a smaller share fails; exactly this share passes.",
    "Chosen: providers withdraw offers, but seldom half of them at once.",
)
MAX_GROWTH = Threshold(
    3,
    "times the usual offers",
    "A reading that exceeds both this and MIN_GROWTH fails.",
    "Chosen: a list that trebles overnight probably has rows of another product.",
)
MIN_GROWTH = Threshold(
    50,
    "offers more than usual",
    "A reading that exceeds both this and MAX_GROWTH fails.",
    "A short list may grow by any factor.",
)
GROWTH_DAYS = Threshold(
    7,
    "accepted days",
    "The median number of offers over these days is the usual one.",
    "A median over a week is robust against single odd days.",
)

# The content of a reading

MAX_GPU_COUNT = Threshold(
    72,
    "GPUs",
    "An offer with more is a reject. `expect.max_gpu_count` overrides it for a source.",
    "The largest machine on sale is one NVL72 rack; sources that sell clusters state more.",
)
PRICE_BOUNDS = Threshold(
    (Decimal("0.01"), Decimal(40)),
    "USD per GPU-hour",
    "A price outside is a reject; both ends pass. `expect.usd_per_gpu_hour` overrides it for a source.",
    "It is wide, because every source of prices has bounds of its own in its yaml.",
)
MAX_OUT_OF_BOUNDS_ROWS = Threshold(
    1,
    "price",
    "A reading with more prices out of bounds, and more than MAX_OUT_OF_BOUNDS_SHARE, fails.",
    "A single price may be a misprint of the page.",
)
MAX_OUT_OF_BOUNDS_SHARE = Threshold(
    0.2,
    "of the prices",
    "A reading with a larger share out of bounds, and more than MAX_OUT_OF_BOUNDS_ROWS, fails.",
    "With many prices out of bounds, a unit or a column was misread.",
)
MIN_FOREIGN_MARKS = Threshold(
    3,
    "amounts",
    "Fewer amounts in another currency do not count as a page in that currency.",
    "A page may quote an amount in another currency in passing.",
)
MAX_RATE_CHANGE = Threshold(
    Decimal("0.25"),
    "of the rate",
    "An exchange rate that moved further against the dollar within a week was misread: no rate is kept.",
    "Chosen: major currencies do not move that far within a week.",
)

# A price against its source's past

MAX_DAY_CHANGE = Threshold(
    Decimal("0.6"),
    "of the smaller price",
    "A price that moved further is held; exactly this passes. `expect.max_day_change` overrides it.",
    "A halved or doubled price is beyond it. Thin marketplaces, which swing severalfold, state more.",
)
SAME_PRICE_TOLERANCE = Threshold(
    Decimal("0.05"),
    "of the smaller price",
    "Prices at most this far apart are the same price, as when a held price is read again.",
    "Such a move hardly changes a ranking.",
)
SAME_FIGURE_TOLERANCE = Threshold(
    Decimal("0.001"),
    "of the smaller price",
    "Prices this close are the same figure, as when one offer has the price of another.",
    "It leaves room for rounding.",
)
MIN_MOVED_PRICES = Threshold(
    3,
    "prices",
    "Fewer moved prices are never most prices of a source.",
    "Two prices may move together by chance.",
)
MIN_MOVED_SHARE = Threshold(
    0.5,
    "of the compared prices",
    "When at least this share moved at once, the moved prices are held.",
    "It is most of the source's prices.",
)
MOVED_TOGETHER = Threshold(
    Decimal("0.05"),
    "of the price",
    "Most prices moving by one factor, and at least this far, are held.",
    "One factor is a misread unit or currency; a smaller one hardly changes a ranking.",
    "The euro is 17% from the dollar.",
)
MOVED_APART = Threshold(
    Decimal("0.1"),
    "of the price",
    "Most prices moving by different factors, and at least this far each, are held; spot prices are not.",
    "Such a page is another one, such as an old one. Spot prices follow demand.",
)
SAME_FACTOR = Threshold(
    0.01,
    "of the logarithm",
    "Factors at most this far apart are one factor.",
    "It leaves room for prices rounded to cents.",
)
MIN_COMPARED_PRICES = Threshold(
    2,
    "prices",
    "With fewer compared prices, MAX_HELD_SHARE does not apply.",
    "A single price says nothing about the page.",
)
MAX_HELD_SHARE = Threshold(
    0.5,
    "of the compared prices",
    "When a larger share must be held at once, the source is refused; exactly this share passes.",
    "The page was misread, so its other prices are in doubt as well.",
)

# What releases a held price

HELD_DAYS = Threshold(
    5,
    "days",
    "A price first held this long ago is believed; a grown or partly answered reading is accepted.",
    "A week's working days are time to look at what the digest names, and most sources' last prices stay "
    "ranked for seven days.",
)
MIN_HELD_READINGS = Threshold(
    3,
    "days",
    "A held price is not believed before it was read at the same price on this many days.",
    "Time alone is no evidence that the page still shows the price.",
)
HISTORY_READINGS = Threshold(
    30,
    "readings",
    "Held prices are looked for in this many of the last readings.",
    "By days instead, a source that is read twice a month would never release a price.",
)
MOVES_WITH_IT = Threshold(
    (0.5, 2.0),
    "times as far, in logarithms",
    "A jump is believed if another source's price of the card moved the same way by a factor in this range.",
    "Chosen: sources follow a market move, but not to the cent.",
)

# A price against what was seen before

OWN_MARGIN = Threshold(
    Decimal("1.9"),
    "times",
    "A first price further outside of what was seen at its source is held.",
    "A halved price is always beyond it, unless the right price moved as well.",
    "Of on-demand prices compared with those of the same source and card at least five days, and mostly "
    "months, away, 2.4% lie beyond 1.5 times and 0.7% beyond 2 times.",
)
MARKET_MARGIN = Threshold(
    Decimal("2.5"),
    "times",
    "A first price further outside of what other sources asked is held, if its own source was never seen.",
    "Prices differ more between sources than at one source; chosen by the false alarms in the dated facts.",
)
SPOT_MARGIN = Threshold(
    Decimal(3),
    "times",
    "The margin of a first spot price, in place of both other margins.",
    "Spot prices follow demand; chosen by the false alarms in the dated facts.",
)
MIN_SOURCES = Threshold(
    3,
    "sources",
    "The prices of fewer sources, or of a single day, are no market to compare a first price with.",
    "A list made on one day has the sources that its author chose.",
)
DISCOUNT = Threshold(
    Decimal(5),
    "times",
    "A first price of another kind may lie this far below the on-demand prices, if only those were seen.",
    "Flex-start, spot and reserved prices are discounts; the margin covers the rest.",
    "The largest discount in the facts is Azure's MI300X: 6.5 times.",
)
SEEN_MARGIN = Threshold(
    Decimal("1.1"),
    "times",
    "A price at most this far outside of what was seen at its source is the one seen there.",
    "Chosen: it leaves room for an ordinary change of a list price.",
)

# A source's prices against each other

MAX_SPREAD = Threshold(
    Decimal(4),
    "times",
    "A card's price this far from the source's median for it, or from its only other price, is flagged.",
    "It is above any spread that was seen.",
    "Linode's RTX 4000 Ada differs by 2.9 times between plans with more or less CPU, memory and disk.",
)
MIN_GPUS_AT_ONE_PRICE = Threshold(
    3,
    "GPU models",
    "This many models at one price, and more than half of the source's models, are flagged.",
    'The reader took one price, such as a "from" price, for all.',
    "Oracle asks one price for two models, H100 and H200.",
)
MAX_INVERSION = Threshold(
    Decimal("1.2"),
    "times",
    "An older card that is dearer than its successor by more is flagged, and so is the successor.",
    "It is the largest inversion in the dated facts, rounded up to a tenth. Cards mistaken for each other "
    "are further apart.",
    "An H100 was dearer than an H200, which is easier to have, in 11 of 96 cases, by up to 1.16 times; "
    "three other pairs were inverted once each, by up to 1.08.",
)
