"""Reasons for rejecting a row in an answer, and for doubting an offer's price.

``RejectReason`` is published with its sentences as the table ``reject_reasons``; each reject also has a
``detail``. Reasons marked as ``held`` are for prices that were read but are not yet believed.
"""

from enum import StrEnum, auto

from pipeline.contracts.codes import CodeWithSentence

_HELD = True
_BY_TIME = True


class RejectReason(CodeWithSentence):
    """The problem with a row. ``held`` is True if the price was readable and may be released later;
    ``by_time`` is True if reading it again on another day is enough to release it, since the change does not
    have the shape of a misread."""

    # The row cannot be read.
    UNREADABLE_ANSWER = auto(), "The whole answer is not in a format that the reader knows."
    UNREAD_PAGE = auto(), "The list continues on pages whose addresses are unknown."
    UNREADABLE_ROW = auto(), "The row, card or object does not have the expected structure."
    MISSING_FIELD = auto(), "A field that every offer needs is missing or unusable."
    TEXT_TOO_LONG = auto(), "A text is longer than any real name, so it was probably misread."
    INVALID_VALUE = auto(), "A value is outside of what the column of an offer allows."

    # The price cannot be read or believed.
    NOT_OFFERED = auto(), "The row has no price: the source does not sell this at present."
    ZERO_PRICE = auto(), "The price is zero or below."
    UNREADABLE_PRICE = auto(), "A price is given but is not one unambiguous amount."
    CONFLICTING_PRICES = auto(), "The source gives different prices for the same thing."
    PLACEHOLDER_SUSPECTED = (
        auto(),
        "The price looks like a placeholder that the source shows where it has none.",
    )
    PRICE_OUT_OF_BOUNDS = auto(), "The price is outside of the source's plausible range."
    PRICE_JUMP = auto(), "The price moved far at once.", _HELD, _BY_TIME
    PRICE_TOO_FAR = auto(), "The price moved further at once than list prices do.", _HELD
    PRICE_OUT_OF_LINE = (
        auto(),
        "The source did not have this card or price kind before, and the price is far from what was seen.",
        _HELD,
    )
    PRICE_OF_ANOTHER_OFFER = (
        auto(),
        "The price is now what another offer of the source cost before: two were probably mixed up.",
        _HELD,
    )
    PRICES_EXCHANGED = auto(), "Prices changed places: labels or columns were probably mixed up.", _HELD
    COLUMN_OF_ANOTHER_KIND = (
        auto(),
        "The prices are now what the same cards cost before as another kind, term, tier or region.",
        _HELD,
    )
    DIGITS_LOST = auto(), "The price is the earlier one without some of its digits.", _HELD
    MOVED_BY_A_CURRENCY = auto(), "Prices moved by one factor, which is an exchange rate.", _HELD
    MOVED_BY_A_TAX = auto(), "Prices moved by one factor, which is a rate of value added tax.", _HELD
    MOVED_BY_A_UNIT = auto(), "The price moved by a factor between units, such as 2 GPUs or 24 hours.", _HELD
    MOVED_BY_A_DISCOUNT = auto(), "Prices moved by one factor, which is a common discount.", _HELD
    PAGE_CHANGED = (
        auto(),
        "The price moved together with its page: the layout changed, another figure was read, or the page "
        "has new wording about its prices.",
        _HELD,
    )
    LIST_MOVED = auto(), "Most prices of the source moved at once, all by one factor.", _HELD, _BY_TIME
    MOST_PRICES_MOVED = (
        auto(),
        "Most prices of the source moved far at once: another page was probably read.",
        _HELD,
    )
    EARLIER_PAGE = auto(), "The prices that moved are those of an earlier day: an old page was read.", _HELD
    REFUSED_BY_A_PERSON = auto(), "A person has refused this price.", _HELD
    CURRENCY_CHANGED = auto(), "The price is in another currency than it was before.", _HELD
    INCOMPLETE_PRICE = (
        auto(),
        "The price of the whole machine is unknown, because not every part of it has exactly one price.",
    )
    DUPLICATE = auto(), "The same offer was already read elsewhere in the answers."

    # It is not known what the price is for.
    UNKNOWN_PRICE_KIND = (
        auto(),
        "What kind of price it is (on-demand, spot, reserved, ...) is not stated, or stated in two ways.",
    )
    UNKNOWN_UNIT = auto(), "What the price is per (hour, second, GPU, machine) is not known."
    UNEXPECTED_CURRENCY = auto(), "The price is in a currency that the source is not known to ask."
    UNKNOWN_CURRENCY = auto(), "The currency of the price is not known with certainty."
    UNKNOWN_TERMS = auto(), "The price depends on conditions that the reader does not know."
    UNKNOWN_TERM_LENGTH = auto(), "The length of the commitment is not a known duration."
    UNKNOWN_GPU_COUNT = (
        auto(),
        "The number of GPUs is not stated, not a possible number, or stated in two ways.",
    )
    IMPOSSIBLE_GPU_COUNT = auto(), "The offer has more GPUs than the source could have."
    UNKNOWN_GPU_SHARE = (
        auto(),
        "The offer is a slice of a GPU whose size is not stated, or is stated to be whole GPUs as well.",
    )

    # The price is not for a GPU machine.
    NOT_A_GPU = auto(), "The label is of something other than a GPU."
    OTHER_PRODUCT = (
        auto(),
        "The price is of another product or service, or only for customers of a special programme.",
    )
    OTHER_PRICE_KIND = auto(), "The price is none of on-demand, flex-start, spot, reserved and serverless."
    VOLUME_PRICE = auto(), "The price applies only above a volume."
    DISCONTINUED = auto(), "The source no longer sells this."
    NOT_LINUX = auto(), "The price includes an operating system other than Linux."
    SOFTWARE_INCLUDED = auto(), "The price includes a licence for other software."

    def __init__(self, code: str, sentence: str, held: bool = False, by_time: bool = False) -> None:
        self.held = held
        self.by_time = by_time


class Evidence(CodeWithSentence):
    """Why a price that was in doubt is believed: the values of ``believed_because``."""

    HISTORY = auto(), "the same offer had this price before"
    SAME_AMOUNT = auto(), "it is the same amount in another currency, at the day's exchange rate"
    STATED_DATE = auto(), "the source states a date since which the new price applies"
    PAGE = auto(), "it was read again on another day, and the page shows it in the place of the earlier price"
    MARKET = auto(), "other sources' prices for the card moved alike"
    PERSON = auto(), "a person confirmed it"
    TIME = auto(), "it was read again on another day, and does not have the shape of a misread"


class FlagReason(StrEnum):
    """Doubts about a readable price: the offer is published with the reason, but not ranked."""

    COMING_SOON = "coming_soon"
    CONFLICTING_PRICES = "conflicting_prices"
    CPU_AND_MEMORY_CHARGED_EXTRA = "cpu_and_memory_charged_extra"
    CUSTOM_QUOTE = "custom_quote"
    DISK_NOT_PRICED = "disk_not_priced"
    FLEX_START_ABOVE_ON_DEMAND = "flex_start_above_on_demand"
    HOST_DEVERIFIED = "host_deverified"
    IMPORTED = "imported"
    LOCAL_SSD_NOT_PRICED = "local_ssd_not_priced"
    LONGER_TERM_DEARER = "longer_term_dearer"
    OLDER_GPU_DEARER = "older_gpu_dearer"
    ONE_PRICE_FOR_ALL = "one_price_for_all"
    PARTS_PRICED_APART = "parts_priced_apart"
    PREPAID_TIME = "prepaid_time"
    RESERVED_AT_ON_DEMAND_PRICE = "reserved_at_on_demand_price"
    RESERVED_NOT_BELOW_ON_DEMAND = "reserved_not_below_on_demand"
    RESTRICTED_REGION = "restricted_region"
    SEVERAL_EFFECTIVE_DATES = "several_effective_dates"
    SPOT_NOT_BELOW_ON_DEMAND = "spot_not_below_on_demand"
    SPOT_PRICE_FLOOR = "spot_price_floor"
    STARTING_PRICE = "starting_price"
    STARTING_PRICE_OF_AN_UNSTATED_TERM = "starting_price_of_an_unstated_term"
    SUPERSEDED = "superseded"
    UNEVEN_PRICES = "uneven_prices"
    UNSTATED_TERM = "unstated_term"


CONTRADICTIONS = frozenset(
    {
        FlagReason.CONFLICTING_PRICES,
        FlagReason.FLEX_START_ABOVE_ON_DEMAND,
        FlagReason.LONGER_TERM_DEARER,
        FlagReason.OLDER_GPU_DEARER,
        FlagReason.ONE_PRICE_FOR_ALL,
        FlagReason.RESERVED_NOT_BELOW_ON_DEMAND,
        FlagReason.UNEVEN_PRICES,
    }
)
"""Flags for prices that contradict others from the same source; a person should check these. A spot price
equal to the on-demand price is not a contradiction: sources without spot prices may repeat it."""
