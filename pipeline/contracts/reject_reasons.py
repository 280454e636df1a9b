"""Why a row of an answer became no offer, and why an offer's price is in doubt.

``RejectReason`` is published with its sentences as the table ``reject_reasons``; what one row lacks is in the
reject's ``detail``. A reason that is ``held`` is of a price that was read and is not yet believed.
"""

from enum import StrEnum

from pipeline.contracts.codes import CodeWithSentence


class RejectReason(CodeWithSentence):
    """What is wrong with a row."""

    # The row cannot be read.
    UNREADABLE_ANSWER = "unreadable_answer", "The whole answer is not in a format that the reader knows."
    UNREAD_PAGE = "unread_page", "The list continues on pages whose addresses are unknown."
    UNREADABLE_ROW = "unreadable_row", "The row, card or object does not have the expected structure."
    MISSING_FIELD = "missing_field", "A field that every offer needs is missing or unusable."
    TEXT_TOO_LONG = "text_too_long", "A text is longer than any real name, so it was probably misread."
    INVALID_VALUE = "invalid_value", "A value is outside of what the column of an offer allows."

    # The price cannot be read or believed.
    NOT_OFFERED = "not_offered", "The row has no price: the source does not sell this at present."
    ZERO_PRICE = "zero_price", "The price is zero or below."
    UNREADABLE_PRICE = "unreadable_price", "A price is given but is not one unambiguous amount."
    CONFLICTING_PRICES = "conflicting_prices", "The source gives different prices for the same thing."
    PLACEHOLDER_SUSPECTED = (
        "placeholder_suspected",
        "The price looks like a placeholder that the source shows where it has none.",
    )
    PRICE_OUT_OF_BOUNDS = "price_out_of_bounds", "The price is outside of the source's plausible range."
    PRICE_JUMP = "price_jump", "The price moved too far at once."
    PRICE_OUT_OF_LINE = (
        "price_out_of_line",
        "The source did not have this card or price kind before, and the price is far from what was seen.",
    )
    PRICE_OF_ANOTHER_OFFER = (
        "price_of_another_offer",
        "The price is now what another offer of the source cost before: two were probably mixed up.",
    )
    MOST_PRICES_MOVED = (
        "most_prices_moved",
        "Most prices of the source moved at once: a unit, a currency or an old page was probably read.",
    )
    CURRENCY_CHANGED = "currency_changed", "The price is in another currency than it was before."
    INCOMPLETE_PRICE = (
        "incomplete_price",
        "The price of the whole machine is unknown, because not every part of it has exactly one price.",
    )
    DUPLICATE = "duplicate", "The same offer was already read elsewhere in the answers."

    # What the price is for is not known.
    UNKNOWN_PRICE_KIND = (
        "unknown_price_kind",
        "What kind of price it is (on-demand, spot, reserved, ...) is not stated, or stated in two ways.",
    )
    UNKNOWN_UNIT = "unknown_unit", "What the price is per (hour, second, GPU, machine) is not known."
    UNEXPECTED_CURRENCY = (
        "unexpected_currency",
        "The price is in a currency that the source is not known to ask.",
    )
    UNKNOWN_CURRENCY = "unknown_currency", "The currency of the price is not known for sure."
    UNKNOWN_TERMS = "unknown_terms", "The price depends on conditions that the reader does not know."
    UNKNOWN_TERM_LENGTH = "unknown_term_length", "The length of the commitment is not a known duration."
    UNKNOWN_GPU_COUNT = (
        "unknown_gpu_count",
        "The number of GPUs is not stated, not a possible number, or stated in two ways.",
    )
    IMPOSSIBLE_GPU_COUNT = "impossible_gpu_count", "The offer has more GPUs than the source could have."
    UNKNOWN_GPU_SHARE = (
        "unknown_gpu_share",
        "The offer is a slice of a GPU whose size is not stated, or is stated to be whole GPUs as well.",
    )

    # The price is for something that is no offer of a GPU machine.
    NOT_A_GPU = "not_a_gpu", "The label is of something other than a GPU."
    OTHER_PRODUCT = (
        "other_product",
        "The price is of another product or service, or only for customers of a special programme.",
    )
    OTHER_PRICE_KIND = (
        "other_price_kind",
        "The price is none of on-demand, flex-start, spot, reserved and serverless.",
    )
    VOLUME_PRICE = "volume_price", "The price applies only above a volume."
    DISCONTINUED = "discontinued", "The source no longer sells this."
    NOT_LINUX = "not_linux", "The price includes an operating system other than Linux."
    SOFTWARE_INCLUDED = "software_included", "The price includes a licence for other software."

    @property
    def held(self) -> bool:
        """Whether the price was readable and is only held: later readings, the market or a person's review
        may release it."""
        return self in _HELD


_HELD = frozenset(
    {
        RejectReason.PRICE_JUMP,
        RejectReason.PRICE_OUT_OF_LINE,
        RejectReason.PRICE_OF_ANOTHER_OFFER,
        RejectReason.MOST_PRICES_MOVED,
        RejectReason.CURRENCY_CHANGED,
    }
)


class FlagReason(StrEnum):
    """Why a readable price is in doubt: the offer is published with it, and is not ranked."""

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
"""Flags of prices that contradict others of their source, which a person should look at. A spot price at the
on-demand price is none: some sources repeat that where they have no spot price."""
