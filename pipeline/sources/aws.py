"""AWS EC2: on-demand price lists, one per region, and the spot prices for all regions.

Only Linux prices of GPU instance types (settings.gpu_instance_types) are read; the GPU follows from the
instance type. Other instance types and operating systems are skipped.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any
from urllib.parse import quote, unquote

from pipeline.sources import kit

_PLAIN_SOFTWARE = frozenset({"", "NA", "N/A"})


def requests(config: kit.SourceConfig, environment: Mapping[str, str]) -> list[kit.Request]:
    """Return requests for the on-demand list of each region that is open to everyone, and for all spot
    prices. The yaml's first request is the pattern for the other on-demand lists, which are optional."""
    first, *further = (kit.Request(facts.url, optional=facts.optional) for facts in config.requests)
    restricted = tuple(config.settings["restricted_region_prefixes"])
    names: dict[str, str] = {}
    for name, code in config.settings["regions"].items():
        names.setdefault(code, name)
    urls = [_on_demand_url(name, config) for code, name in names.items() if not code.startswith(restricted)]
    return [first, *(kit.Request(url, optional=True) for url in urls if url != first.url), *further]


def retry_requests(answer: kit.Answer, config: kit.SourceConfig) -> list[kit.Request]:
    """Return a region's request with the next spelling of its name, since some URLs use EU for Europe."""
    regions = config.settings["regions"]
    failed = _region_of_url(answer)
    spellings = [name for name, code in regions.items() if code == regions.get(failed)]
    after = spellings[spellings.index(failed) + 1 :] if failed in spellings else []
    return [kit.Request(_on_demand_url(name, config)) for name in after[:1]]


def _on_demand_url(region: str, config: kit.SourceConfig) -> str:
    pattern = config.requests[0].url
    return pattern.replace(pattern.split("/")[-3], quote(region, safe="()"))


@kit.joint_reader("no GPU instance type in any answer")
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """Every GPU price in every answer. An answer of an unknown kind becomes a reject."""
    known, refused = kit.each_answer(answers, partial(_rows_of, audit=audit))
    yield from refused
    for _, rows in known:
        yield from rows


def _rows_of(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Return the rows of an answer. Raises SourceChangedError if the answer is of an unknown kind."""
    body = answer.json()
    if isinstance(body, dict) and isinstance(body.get("regions"), dict):
        regions = [each.values() if isinstance(each, dict) else [each] for each in body["regions"].values()]
        return _read_on_demand(chain.from_iterable(regions), answer, audit)
    if rows := _bare_rows(body):
        return _read_on_demand(rows, answer, audit)
    config = body.get("config") if isinstance(body, dict) else None
    if isinstance(config, dict) and isinstance(config.get("regions"), list):
        return _read_spot(config["regions"], answer, audit)
    raise answer.changed("neither an on-demand list (regions) nor spot prices (config.regions)")


def _bare_rows(body: Any) -> list[Any]:
    """Return the rows of an on-demand list (an object or a list) that has no envelope."""
    rows = list(body.values()) if isinstance(body, dict) else body if isinstance(body, list) else []
    is_list = any(isinstance(row, dict) and "Instance Type" in row for row in rows)
    return rows if is_list else []


def _is_gpu(instance_type: Any, config: kit.SourceConfig) -> bool:
    return re.fullmatch(config.settings["gpu_instance_types"], str(instance_type)) is not None


def _listing(
    item: kit.JsonObject, instance_type: str, price: Decimal, region: str, **columns: Any
) -> kit.Listing:
    restricted = tuple(item.config.settings["restricted_region_prefixes"])
    return item.listing(
        instance_type,
        None,
        price,
        instance_type=instance_type,
        label_kind="instance_type",
        region=region,
        flag_reason=kit.FlagReason.RESTRICTED_REGION if region.startswith(restricted) else None,
        **columns,
    )


# On-demand lists


def _read_on_demand(rows: Iterable[Any], answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    gpus = []
    for raw in rows:
        if not isinstance(raw, dict):
            yield kit.Reject(kit.RejectReason.UNREADABLE_ROW, "not a row", raw, answer)
        elif "Instance Type" not in raw or _is_gpu(raw["Instance Type"], audit.config):
            gpus.append(audit.item(raw, answer))
    yield from kit.read_rows(gpus, _on_demand, "Instance Type", "Location")


def _on_demand(row: kit.JsonObject) -> kit.Listings:
    if (system := row.text("Operating System")) != "Linux":
        raise kit.RowError(kit.RejectReason.NOT_LINUX, f"the operating system is {system!r}")
    if str(software := row.get("Pre Installed S/W") or "") not in _PLAIN_SOFTWARE:
        raise kit.RowError(kit.RejectReason.SOFTWARE_INCLUDED, f"with {software!r}")
    location = row.text("Location")
    yield _listing(
        row,
        row.text("Instance Type"),
        row.price("price"),
        row.config.settings["regions"].get(location, location),
        vcpus=_leading_number(row.get("vCPU")),
        ram_gib=_leading_number(row.get("Memory"), "GiB"),
        local_disk_gb=_disk_gb(row.get("Storage")),
        node_network_gbps=_leading_number(row.get("Network Performance"), "Gigabit"),
    )


def _region_of_url(answer: kit.Answer) -> str:
    """Return the region's name in the URL of an on-demand list, or "" if there is none."""
    found = re.search(r"/([^/]+)/Linux/index\.json$", unquote(answer.url))
    return found[1] if found else ""


def _leading_number(text: Any, unit: str = "") -> float | None:
    """Return the number in ``2048 GiB`` or ``3200 Gigabit``; None for "Up to 20 Gigabit"."""
    found = re.fullmatch(rf"([\d,]{{1,12}}(?:\.\d{{1,4}})?) ?{unit}", str(text).strip(), re.IGNORECASE)
    return float(kit.number(found[1])) if found else None


def _disk_gb(text: Any) -> float | None:
    """Return the total size of the local disks in ``8 x 3840 GB SSD`` or ``1 x 250 GB NVMe SSD``; None for
    "EBS only"."""
    found = re.match(r"(\d{1,3}) x (\d{1,6})\b", str(text))
    return float(int(found[1]) * int(found[2])) if found else None


# Spot prices


def _read_spot(regions: Iterable[Any], answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    for region in regions:
        if not isinstance(region, dict) or not isinstance(region.get("region"), str):
            raise answer.changed("a region without a name in config.regions")
        sizes = (audit.item(size, answer, "spot.") for size in _sizes(region, answer))
        gpu_sizes = (size for size in sizes if _is_gpu(size.peek("size"), audit.config))
        yield from kit.read_rows(gpu_sizes, partial(_spot, region=region["region"]), "size")


def _sizes(region: Mapping[str, Any], answer: kit.Answer) -> Iterator[Mapping[str, Any]]:
    families = region.get("instanceTypes")
    for family in families if isinstance(families, list) else [None]:
        sizes = family.get("sizes") if isinstance(family, dict) else None
        if not isinstance(sizes, list) or not all(isinstance(size, dict) for size in sizes):
            raise answer.changed(f"{region['region']} has no list of instanceTypes with sizes")
        yield from sizes


def _spot(size: kit.JsonObject, region: str) -> kit.Listings:
    linux = [column for column in size.objects("valueColumns") if column.get("name") == "linux"]
    prices = linux[0].get("prices") if len(linux) == 1 else None
    if not isinstance(prices, dict) or size.config.currency not in prices:
        detail = f"no single Linux column with a price in {size.config.currency}"
        raise kit.RowError(kit.RejectReason.MISSING_FIELD, detail)
    price = kit.price_of(prices[size.config.currency])
    yield _listing(size, size.text("size"), price, region, price_kind="spot")
