"""What a reader of a source uses of our code, in one place: its only import from the rooms below."""

from collections.abc import Iterator, Sequence

from pipeline.catalog.places import place_of as place_of
from pipeline.catalog.source_config import NextLinkPaging as NextLinkPaging
from pipeline.catalog.source_config import SourceConfig as SourceConfig
from pipeline.catalog.source_config import configs as configs
from pipeline.contracts.listing import Answer as Answer
from pipeline.contracts.listing import Listing as Listing
from pipeline.contracts.listing import NativeUnit as NativeUnit
from pipeline.contracts.listing import PriceKind as PriceKind
from pipeline.contracts.listing import ReaderWarning as ReaderWarning
from pipeline.contracts.listing import Reject as Reject
from pipeline.contracts.listing import Request as Request
from pipeline.contracts.listing import Row as _Row
from pipeline.contracts.listing import SourceChangedError as SourceChangedError
from pipeline.contracts.listing import read_json as read_json
from pipeline.contracts.rates import ExchangeRates as ExchangeRates
from pipeline.contracts.reject_reasons import FlagReason as FlagReason
from pipeline.contracts.reject_reasons import RejectReason as RejectReason
from pipeline.home.csv_rows import CsvError as CsvError
from pipeline.home.csv_rows import CsvRow as CsvRow
from pipeline.home.csv_rows import parse_csv as parse_csv
from pipeline.parsing.announced import Validity as Validity
from pipeline.parsing.announced import is_superseded as is_superseded
from pipeline.parsing.announced import validity as validity
from pipeline.parsing.answers import at_least_one as at_least_one
from pipeline.parsing.answers import each_answer as each_answer
from pipeline.parsing.answers import reader as reader
from pipeline.parsing.dates import date_of as date_of
from pipeline.parsing.dates import day_of as day_of
from pipeline.parsing.dates import effective_from as effective_from
from pipeline.parsing.flight import flight_text as flight_text
from pipeline.parsing.flight import objects_after as objects_after
from pipeline.parsing.gpu_counts import gpu_count as gpu_count
from pipeline.parsing.gpu_counts import gpu_count_by_memory as gpu_count_by_memory
from pipeline.parsing.gpu_counts import gpu_count_in as gpu_count_in
from pipeline.parsing.html import around as around
from pipeline.parsing.html import around_with_class as around_with_class
from pipeline.parsing.html import around_with_role as around_with_role
from pipeline.parsing.html import exactly_one as exactly_one
from pipeline.parsing.html import is_hidden as is_hidden
from pipeline.parsing.html import json_ld as json_ld
from pipeline.parsing.html import named as named
from pipeline.parsing.html import page as page
from pipeline.parsing.html import text_of as text_of
from pipeline.parsing.html import texts_of as texts_of
from pipeline.parsing.html import with_class as with_class
from pipeline.parsing.html import with_role as with_role
from pipeline.parsing.json_objects import ENVELOPE as ENVELOPE
from pipeline.parsing.json_objects import FieldAudit as FieldAudit
from pipeline.parsing.json_objects import JsonObject as JsonObject
from pipeline.parsing.json_objects import read_rows as read_rows
from pipeline.parsing.json_walk import json_ld_nodes as json_ld_nodes
from pipeline.parsing.paging import next_page as next_page
from pipeline.parsing.prices import CellPrice as CellPrice
from pipeline.parsing.prices import RowError as RowError
from pipeline.parsing.prices import agreed as agreed
from pipeline.parsing.prices import cell_price as cell_price
from pipeline.parsing.prices import gpu_hour_field as gpu_hour_field
from pipeline.parsing.prices import gpu_hour_row as gpu_hour_row
from pipeline.parsing.prices import is_available as is_available
from pipeline.parsing.prices import known as known
from pipeline.parsing.prices import optional_number as optional_number
from pipeline.parsing.prices import price_of as price_of
from pipeline.parsing.prices import reject_contradictions as reject_contradictions
from pipeline.parsing.prices import spot_flag as spot_flag
from pipeline.parsing.printable import printable as printable
from pipeline.parsing.tables import PriceColumn as PriceColumn
from pipeline.parsing.tables import Table as Table
from pipeline.parsing.tables import column as column
from pipeline.parsing.tables import columns as columns
from pipeline.parsing.tables import price_columns as price_columns
from pipeline.parsing.tables import prices_in_unknown_columns as prices_in_unknown_columns
from pipeline.parsing.tables import require_on_demand as require_on_demand
from pipeline.parsing.tables import table as table
from pipeline.parsing.tables import visible_tables as visible_tables
from pipeline.parsing.terms import DAYS_PER as DAYS_PER
from pipeline.parsing.terms import price_kind as price_kind
from pipeline.parsing.terms import term_days as term_days
from pipeline.parsing.text import HOURLY as HOURLY
from pipeline.parsing.text import MONEY_IN_TEXT as MONEY_IN_TEXT
from pipeline.parsing.text import UnreadableError as UnreadableError
from pipeline.parsing.text import clean_text as clean_text
from pipeline.parsing.text import is_not_offered as is_not_offered
from pipeline.parsing.text import number as number
from pipeline.parsing.text_blocks import Item as Item
from pipeline.parsing.text_blocks import agrees_with_hourly as agrees_with_hourly
from pipeline.parsing.text_blocks import card_around as card_around
from pipeline.parsing.text_blocks import cards as cards
from pipeline.parsing.text_blocks import items as items
from pipeline.parsing.text_blocks import label_before as label_before
from pipeline.parsing.text_blocks import leading_price as leading_price
from pipeline.parsing.text_blocks import native_unit as native_unit
from pipeline.parsing.text_blocks import prices_with_words as prices_with_words
from pipeline.parsing.text_blocks import visible_texts as visible_texts
from pipeline.parsing.units import HOURS_PER_MONTH as HOURS_PER_MONTH
from pipeline.parsing.units import TimeUnit as TimeUnit
from pipeline.parsing.units import gb_from_gib as gb_from_gib
from pipeline.parsing.units import gib_from_bytes as gib_from_bytes
from pipeline.parsing.units import gib_from_mib as gib_from_mib
from pipeline.parsing.units import gigabytes as gigabytes
from pipeline.parsing.units import usd_per_gb_month as usd_per_gb_month

Answers = Sequence[Answer]
"""What a reader is given: the answers to one visit's requests."""

Reading = Iterator[_Row]
"""What ``read`` yields: listings, rejects, and at the end warnings."""

Rows = Iterator[Listing | Reject]
"""What a part of a reader yields."""

Listings = Iterator[Listing]
