"""Everything in gpufare that a source's reader may use: readers import nothing else from gpufare.

The modules made for readers are exported whole, so that each helper is named only where it is defined.
"""
# ruff: noqa: F403

from pipeline.catalog.places import place_of as place_of
from pipeline.catalog.source_config import NextLinkPaging as NextLinkPaging
from pipeline.catalog.source_config import SourceConfig as SourceConfig
from pipeline.catalog.source_config import configs as configs
from pipeline.contracts.listing import *
from pipeline.contracts.rates import ExchangeRates as ExchangeRates
from pipeline.contracts.reject_reasons import *
from pipeline.home.csv_rows import CsvError as CsvError
from pipeline.home.csv_rows import CsvRow as CsvRow
from pipeline.home.csv_rows import parse_csv as parse_csv
from pipeline.parsing.answers import *
from pipeline.parsing.dates import *
from pipeline.parsing.flight import *
from pipeline.parsing.gpu_counts import *
from pipeline.parsing.html import *
from pipeline.parsing.json_objects import *
from pipeline.parsing.paging import *
from pipeline.parsing.prices import *
from pipeline.parsing.printable import *
from pipeline.parsing.tables import *
from pipeline.parsing.terms import *
from pipeline.parsing.text import *
from pipeline.parsing.text_blocks import *
from pipeline.parsing.units import *
