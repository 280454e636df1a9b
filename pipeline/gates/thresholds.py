"""The thresholds of the gates, from catalog/gate_thresholds.csv.

Each row gives a value and its unit, what the value decides, why it was chosen, and where the evidence was
seen, if anywhere. `make docs` writes docs/explanation/price-gates.md from this file. The thresholds for
comparing all sources with each other are the ``market_*`` rows of catalog/cost_parameters.csv, used in SQL.
"""

from decimal import Decimal

from pydantic import BaseModel, ConfigDict

from pipeline.catalog.tables import catalog_rows


class Thresholds(BaseModel):
    """One value per row. An int is a number of rows, days or times; a Decimal is compared with prices."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    late_after_minutes: int
    max_clock_error_minutes: int
    min_clock_sources: int
    read_seconds_per_page: int
    read_seconds_per_source: int
    read_memory_mib: int
    rows_max: int
    flood_factor: int
    warned_loss: float
    refused_loss: float
    min_table_rows: int
    max_growth: int
    min_growth: int
    same_length: float
    growth_days: int
    max_gpu_count: int
    min_usd_per_gpu_hour: Decimal
    max_usd_per_gpu_hour: Decimal
    max_out_of_bounds_rows: int
    max_out_of_bounds_share: float
    min_foreign_marks: int
    max_page_age_days: int
    max_page_lag_days: int
    tokens_before: int
    tokens_after: int
    max_compared_mib: int
    max_rate_change: Decimal
    max_day_change: Decimal
    max_list_change: Decimal
    max_timed_change: Decimal
    same_price_tolerance: Decimal
    same_figure_tolerance: Decimal
    factor_tolerance: Decimal
    rate_tolerance: Decimal
    rounding: Decimal
    min_moved_prices: int
    min_moved_share: float
    moved_together: Decimal
    moved_apart: Decimal
    same_factor: Decimal
    nearly_all: float
    min_column_prices: int
    min_compared_prices: int
    max_held_share: float
    held_days: int
    unanswered_days: int
    history_readings: int
    max_move_ratio: float
    min_alike_sources: int
    min_fact_age_days: int
    own_margin: Decimal
    market_margin: Decimal
    spot_margin: Decimal
    min_sources: int
    discount: Decimal
    seen_margin: Decimal
    max_spread: Decimal
    min_gpus_at_one_price: int
    max_inversion: Decimal


THRESHOLDS = Thresholds.model_validate(
    {row["name"]: row["value"] for row in catalog_rows("gate_thresholds.csv")}
)
