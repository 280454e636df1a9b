"""Exoscale: two lists, of prices and of types, that only together make an offer."""

import json
from typing import Any

from tests.sources.edited_pages import changed, each, misread, outcome
from tests.sources.helpers import page

TYPES = json.loads(page("exoscale", "instance_types.json"))["instance-types"]
SMALL, STANDARD = TYPES[2], TYPES[0]


def types(*kinds: Any) -> dict[str, Any]:
    return {"instance-types": list(kinds)}


def prices(**usd: Any) -> dict[str, Any]:
    return {"chf": dict.fromkeys(usd, "9.9"), "eur": dict.fromkeys(usd, "8.8"), "usd": usd}


def small(change: dict[str, Any]) -> tuple[Any, Any]:
    """The two lists, with a small type that has other fields, beside one without GPUs."""
    return prices(running_gpu3_small="1.0453", running_standard_large="1"), types(
        changed(SMALL, change), STANDARD
    )


def test_a_type_is_offered_in_its_zones_at_the_dollar_price_of_its_name() -> None:
    first = ("gpu3.small", "de-fra-1", 1, "1.0453", "USD", 56)
    cases = [
        ({}, [first]),
        ({"zones": ["de-fra-1", 7, "hr-zag-1", "de-fra-1"]}, [first, (first[0], "hr-zag-1", *first[2:])]),
        ({"gpus": 2, "memory": 2**33}, [("gpu3.small", "de-fra-1", 2, "1.0453", "USD", 8)]),
        *each([{"memory": "?"}, {"memory": 0}], (*first[:5], None)),
        *each([{"zones": []}, {"zones": None}, {"zones": "de-fra-1"}], "not_offered"),
        ({"size": "colossal"}, ["not_offered", "discontinued"]),
        *each([{"gpus": "two"}, {"gpus": -1}], "unknown_gpu_count"),
    ]
    columns = "instance_type region gpu_count native_price native_currency ram_gib"
    assert not misread("exoscale", small, cases, columns)


def test_the_disk_is_priced_per_gib_and_hour() -> None:
    for volume, per_month in (({"volume": "0.00014"}, "0.095181"), ({}, None), ({"volume": "free"}, None)):
        found = outcome(
            "exoscale",
            prices(running_gpu3_small="1", **volume),
            types(SMALL),
            columns="storage_usd_per_gb_month",
        )
        assert found == [per_month]
