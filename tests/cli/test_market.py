"""Prices per GPU-hour, and the lists of GPUs and models."""

import json
from pathlib import Path
from typing import Any

import gpufare as python
from pipeline.home.paths import Home
from pipeline.questions.tables import LEVELS, LONGEST_LINE, prices_line
from tests.conftest import gpufare
from tests.homes import with_double_prices_before


def rows(*arguments: str, home: Home) -> list[dict[str, Any]]:
    answer = gpufare(*arguments, "--format", "jsonl", home=home)
    assert answer.returncode == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.splitlines()]


def test_prices_are_those_of_the_ranked_offers_with_their_hosts_cheapest_first(sample_home: Home) -> None:
    found = rows("prices", "h100", "--kind", "spot", home=sample_home)
    with python.open(sample_home.root) as prices:
        assert prices.prices("h100", kind="spot")[0]["usd_per_gpu_hour"] == found[0]["usd_per_gpu_hour"]
        offers = prices.sql(
            "SELECT gpu_id, provider, min(usd_per_gpu_hour) AS usd FROM price_list "
            "WHERE gpu_id LIKE 'h100-%' AND price_kind = 'spot' GROUP BY ALL"
        )
    usd = [row["usd_per_gpu_hour"] for row in found]
    assert usd == sorted(usd)
    listed = {(row["gpu_id"], row["provider"]): row["usd"] for row in offers}
    shown = {(row["gpu_id"], row["provider"]): row["usd_per_gpu_hour"] for row in found}
    assert shown.keys() == listed.keys()
    # Only Daytona charges for hosts.
    assert {name for name in shown if abs(shown[name] - listed[name]) > 1e-6} == {("h100-80gb", "Daytona")}
    assert shown["h100-80gb", "Daytona"] > listed["h100-80gb", "Daytona"]


def test_prices_can_be_of_some_places_providers_and_numbers_of_gpus(sample_home: Home) -> None:
    eight = rows("prices", "h100", "--min-gpus", "8", "--gpus", "8", home=sample_home)
    assert {row["gpu_count"] for row in eight} == {8}
    assert all(abs(row["usd_per_hour"] - 8 * row["usd_per_gpu_hour"]) < 1e-6 for row in eight)
    assert {row["country"] for row in rows("prices", "--country", "no", home=sample_home)} == {"NO"}
    own = rows("prices", "--provider", "lambda", "--tier", "dedicated", home=sample_home)
    assert {row["provider"] for row in own} == {"Lambda"}
    table = gpufare("prices", "h100", home=sample_home).stdout
    assert "The cheapest of a company's own machines: H100 " in table
    none = gpufare("prices", "h100", "--country", "andorra", home=sample_home)
    assert (none.returncode, none.stdout) == (1, "")
    assert "no on-demand price meets country andorra, gpu h100" in none.stderr


def test_the_history_is_a_line_for_each_card(sample_home: Home, tmp_path: Path) -> None:
    """On the day before, every price was double; a place chooses past prices, a provider does not."""
    home = with_double_prices_before(tmp_path, sample_home)
    days = rows("prices", "rtx-4090", "--history", home=home)
    assert [row["day"] for row in days] == ["2026-08-21", "2026-08-22"]
    assert days[0]["usd_per_gpu_hour"] == 2 * days[1]["usd_per_gpu_hour"]
    shown = gpufare("prices", "rtx-4090", "--history", home=home).stdout
    assert f"  {LEVELS[-1]}{LEVELS[0]}  " in shown
    assert "2 days on record, 2026-08-21 to 2026-08-22" in shown
    refused = gpufare("prices", "rtx-4090", "--history", "--provider", "lambda", home=home)
    assert refused.returncode == 2
    assert "past prices cannot be chosen by provider" in refused.stderr


def test_a_line_of_prices_reaches_from_the_lowest_to_the_highest() -> None:
    assert prices_line([1.0, 1.0]) == LEVELS[0] * 2
    assert prices_line([1.0, 2.0, 1.5]) == LEVELS[0] + LEVELS[-1] + LEVELS[4]
    assert prices_line([9.0, *range(LONGEST_LINE)])[0] == LEVELS[0]


def test_names_are_listed_by_a_part_of_them(sample_home: Home) -> None:
    assert [row["model"] for row in rows("models", "Qwen3-32", home=sample_home)] == ["qwen3-32b"]
    llamas = [row["model"] for row in rows("models", "llama 70b", home=sample_home)]
    assert "llama-3.3-70b" in llamas
    assert all("llama" in model and "70b" in model for model in llamas)
    every = rows("gpus", home=sample_home)
    hopper = rows("gpus", "hopper", home=sample_home)
    assert {row["architecture"] for row in hopper} == {"Hopper"}
    assert len(hopper) == sum(row["architecture"] == "Hopper" for row in every)
    for command in ("gpus", "models"):
        unknown = gpufare(command, "no such name", home=sample_home)
        assert unknown.returncode == 2
        assert f"gpufare {command} lists all of them" in unknown.stderr
