"""The plans and rentals from which the page answers any job, in arrays of bytes.

A plan is a cell of a table of recipes (model, method, sequence length and rank) by slots (GPU, number of GPUs
and machines that are rented out). Bytes that tend to be equal stand together, so that they compress well.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb

from pipeline.contracts.errors import GpufareError
from pipeline.page.queries import exact, rows, tenths_of_percent

MANTISSAS = 90_000
"""The number of five-digit numbers in a decade: 10,000 to 99,999."""

_LEAST_POWER = -6
"""The power of ten of the smallest speed that has a number, in tokens per second."""

_MOST_DISTINCT = 255
"""The most bands, settings, P(fits), or sizes of state within a recipe: a cell has a byte for each."""

_NEIGHBOURS = 4
"""The number of earlier slots of a recipe among which the speed of a slot is compared with one."""

Slot = tuple[str, int, int]
"""gpu_id, gpu_count, node_count."""


class Numbered:
    """Things, numbered from 0 in the order in which they are first seen."""

    def __init__(self) -> None:
        self.things: dict[Any, int] = {}

    def of(self, thing: Any) -> int:
        """Return the number of a thing."""
        return self.things.setdefault(thing, len(self.things))


def plans_and_rentals(connection: duckdb.DuckDBPyConnection) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return what the page needs to answer a job: facts for JSON, and arrays, keyed by name. An array has a
    byte per recipe and slot, by slot, 0 where there is no plan. Raises QueryError, and GpufareError if the
    plans do not fit into the arrays."""
    rentals = list(rows(connection, "rentals"))
    recipes = list(rows(connection, "recipes"))
    slots = list(dict.fromkeys((row["gpu_id"], row["gpu_count"], row["node_count"]) for row in rentals))
    facts, arrays = _cells(list(rows(connection, "plans")), recipes, slots)
    slot_numbers = {slot: number for number, slot in enumerate(slots)}
    for row in rentals:
        row["slot"] = slot_numbers[row.pop("gpu_id"), row.pop("gpu_count"), row.pop("node_count")]
    return {
        **facts,
        "slots": [list(slot) for slot in slots],
        "recipes": columns(recipes),
        "rentals": coded(rentals),
        "fits": _fits(rows(connection, "fits"), recipes),
    }, arrays


def columns(found: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as columns of values for JSON."""
    return {name: [exact(row[name]) for row in found] for name in (found[0] if found else ())}


def coded(found: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as columns: the distinct values of each, and the number of the value in each row."""
    by_name = {}
    for name in found[0] if found else ():
        values = Numbered()
        places = [values.of(_hashable(exact(row[name]))) for row in found]
        by_name[name] = [list(values.things), places]
    return by_name


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _recipe(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (row["model"], row["method"], row["seq_len"], row["lora_rank"])


def _fits(found: Iterable[Mapping[str, Any]], recipes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return where each recipe fits: the distinct lists of [gpu_id, fewest GPUs, P(fits) in tenths of a
    percent], and the number of each recipe's list. The P(fits) stands where no number of GPUs ranks."""
    by_recipe: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {_recipe(row): [] for row in recipes}
    for row in found:
        fewest = row["fits_from_gpus"]
        fit = None if fewest else tenths_of_percent(row["fit_probability"])
        by_recipe[_recipe(row)].append((row["gpu_id"], fewest, fit))
    lists = Numbered()
    places = [lists.of(tuple(sorted(each))) for each in by_recipe.values()]
    gpus = Numbered()
    short = [[[gpus.of(gpu), *rest] for gpu, *rest in each] for each in lists.things]
    return {"gpus": list(gpus.things), "lists": short, "of_recipe": places}


def _cells(
    plans: Sequence[Mapping[str, Any]], recipes: Sequence[Mapping[str, Any]], slots: Sequence[Slot]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the distinct bands, settings, P(fits) and sizes of state of the plans, and the arrays of cells:
    the number of each, from 1, and the planes of the speeds."""
    row_of = {_recipe(row): number for number, row in enumerate(recipes)}
    slot_of = {slot: number for number, slot in enumerate(slots)}
    bands, settings, fits = Numbered(), Numbered(), Numbered()
    states = [Numbered() for _ in recipes]
    speeds = [[0.0] * len(slots) for _ in recipes]
    arrays = {name: bytearray(len(recipes) * len(slots)) for name in ("band", "setting", "fit", "state")}
    for plan in plans:
        row = row_of[_recipe(plan)]
        slot = slot_of[plan["gpu_id"], plan["gpu_count"], plan["node_count"]]
        speeds[row][slot] = plan["tokens_per_second"]
        numbers = {
            "band": bands.of((plan["low"], plan["high"], plan["evidence"])),
            "setting": settings.of((plan["micro_batch"], plan["checkpointing"], plan["sharding"])),
            "fit": fits.of((tenths_of_percent(plan["fit_probability"]), plan["is_tight"])),
            "state": states[row].of(plan["training_state_gib"]),
        }
        for name, number in numbers.items():
            if number >= _MOST_DISTINCT:
                raise GpufareError(f"the page has no room for over {_MOST_DISTINCT} values of {name}")
            arrays[name][slot * len(recipes) + row] = number + 1
    facts = {
        "bands": [dict(zip(("low", "high", "evidence"), each, strict=True)) for each in bands.things],
        "plan_settings": [
            dict(zip(("micro_batch", "checkpointing", "sharding"), each, strict=True))
            for each in settings.things
        ],
        "fits_seen": [dict(zip(("tenths", "is_tight"), each, strict=True)) for each in fits.things],
        "states": [list(each.things) for each in states],
    }
    return facts, {name: bytes(each) for name, each in arrays.items()} | _planes(speeds)


def _planes(speeds: Sequence[Sequence[float]]) -> dict[str, bytes]:
    """Return how far each speed is from its prediction, by recipe and slot, in the low, middle and high bytes
    of whole numbers; a recipe's first speeds are predicted poorly, most others within some percent."""
    wrong = [speed_number(speed) - speed_number(guess) for speed, guess in _guesses(speeds)]
    whole = [2 * each if each >= 0 else -2 * each - 1 for each in wrong]
    return {
        name: bytes(each >> shift & 255 for each in whole)
        for name, shift in (("speed_low", 0), ("speed_middle", 8), ("speed_high", 16))
    }


def _guesses(speeds: Sequence[Sequence[float]]) -> Iterator[tuple[float, float]]:
    """Yield each speed with what the page can guess from earlier ones: the speed of the last recipe on the
    same slot, times how much faster this recipe is on a slot nearby. data.js takes the same steps."""
    last: list[int | None] = [None] * len(speeds[0]) if speeds else []
    for number, row in enumerate(speeds):
        seen: list[int] = []
        for slot, speed in enumerate(row):
            if not speed:
                continue
            former = last[slot]
            guess = row[seen[-1]] if seen else 1.0
            if former is not None:
                guess = speeds[former][slot]
                for near in reversed(seen[-_NEIGHBOURS:]):
                    if speeds[former][near]:
                        guess = speeds[former][slot] * row[near] / speeds[former][near]
                        break
            yield speed, guess
            last[slot] = number
            seen.append(slot)


def speed_number(speed: float) -> int:
    """Return the place of a speed among the numbers of five digits, in ascending order from
    10**_LEAST_POWER on. Each step is exact or rounded as IEEE 754 says, so that JavaScript gets the same.
    Raises GpufareError for a lower speed."""
    power = _LEAST_POWER
    if speed < _power(power):
        raise GpufareError(f"a planned speed of {speed:g} tokens/s is too low for the page")
    while speed >= _power(power + 1):
        power += 1
    scaled = speed / _power(power - 4) if power >= 4 else speed * _power(4 - power)
    return (power - _LEAST_POWER) * MANTISSAS + math.floor(scaled + 0.5) - MANTISSAS // 9


def _power(exponent: int) -> float:
    return float(10**exponent) if exponent >= 0 else 1 / float(10**-exponent)
