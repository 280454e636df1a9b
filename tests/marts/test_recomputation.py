"""The published rankings, recomputed from the tables they rest on without any of the SQL.

The rules are written here a second time, in Python: which offers can be rented for a number of GPUs, what is
billed, what failures and interruptions cost, what is ranked where. Both must agree to the cent, rank by rank.
"""

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import duckdb
import pytest

from pipeline.home.paths import Home
from pipeline.refresh.demo import sample_days
from tests.conftest import PAGES, reader_on

Row = Mapping[str, Any]
GB_PER_GIB = 1.073741824
PICKS = 60
MIN_FIT_PROBABILITY = 0.9


@dataclass(frozen=True)
class Inputs:
    """The published tables that a total is computed from."""

    offers: list[Row]
    plans: dict[tuple[Any, ...], list[Row]]
    gpus: dict[str, Row]
    sizes: dict[tuple[str, str | None, str | None], Row]
    workloads: list[Row]
    parameters: dict[tuple[str, str], float]
    lasting_disks: set[str]
    """Sources whose disks can outlive their machines."""
    notices: dict[str, str]
    """The renter_notice of each country."""

    def parameter(self, name: str, offer: Row) -> float:
        cases = (*(f"{what}:{offer[what]}" for what in ("source", "tier_class", "price_kind")), "default")
        return next(self.parameters[name, case] for case in cases if (name, case) in self.parameters)

    def stated_or_default(self, offer: Row, column: str) -> float:
        """The offer's own value, or the parameter of the same name."""
        value = offer[column]
        return float(value) if value is not None else self.parameter(column, offer)

    def notice(self, offer: Row) -> str | None:
        return self.notices.get(offer["country"])


@dataclass(frozen=True)
class Priced:
    """A way to run a job: its dollars and hours, also at the slow end, and what speaks against it."""

    usd: Decimal
    hours: float
    share_used: float
    reclaims: float
    stops: bool
    hourly_usd: float = 0
    slow_hours: float = 0
    is_late: bool = False
    is_safe: bool = False
    is_unusual: bool = False
    doubts: float = 0
    is_stock_open: bool = False
    shown: tuple[Any, ...] = ()
    """Count, GPU and source."""

    @property
    def order(self) -> tuple[Any, ...]:
        return self.is_late, self.usd, self.hours, *self.shown


def table(connection: duckdb.DuckDBPyConnection, name: str) -> list[Row]:
    found = connection.execute(f"SELECT * FROM main.{name}")
    columns = [column[0] for column in found.description]
    return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]


@pytest.fixture(scope="module")
def published(sample_home: Home) -> Iterator[duckdb.DuckDBPyConnection]:
    with reader_on(sample_home.published, sample_days(PAGES)[0]) as connection:
        yield connection


@pytest.fixture(scope="module")
def inputs(published: duckdb.DuckDBPyConnection) -> Inputs:
    plans = defaultdict(list)
    for plan in table(published, "plans"):
        if plan["verdict"] != "does_not_fit" and plan["fit_probability"] >= MIN_FIT_PROBABILITY:
            plans[plan["model"], plan["method"], plan["seq_len"], plan["lora_rank"]].append(plan)
    sizes, parameters = table(published, "machine_sizes"), table(published, "cost_parameters")
    return Inputs(
        offers=[offer for offer in table(published, "offers_latest") if offer["ranked"]],
        plans=plans,
        gpus={gpu["gpu_id"]: gpu for gpu in table(published, "gpus")},
        sizes={(row["source"], row["gpu_id"], row["tier"]): row for row in sizes},
        workloads=table(published, "workloads"),
        parameters={(row["name"], row["applies_to"]): row["value"] for row in parameters},
        notices={row["country"]: row["renter_notice"] for row in table(published, "countries")},
        lasting_disks={row["source"] for row in table(published, "sources") if row["persistent_disk"]},
    )


def catalogued(inputs: Inputs, offer: Row) -> Row | None:
    """The row of machine_sizes for the offer: of its card and tier, of its card, of its tier, or of all."""
    for gpu_id in (offer["gpu_id"], None):
        for tier in (offer["tier"], None):
            if (offer["source"], gpu_id, tier) in inputs.sizes:
                return inputs.sizes[offer["source"], gpu_id, tier]
    return None


def sold_together(inputs: Inputs, offer: Row) -> list[int]:
    """Return the numbers of GPUs in which the machine is sold; none if they are unknown."""
    if offer["gpu_counts"]:
        return list(offer["gpu_counts"])
    by_the_gpu = offer["native_unit"].startswith("gpu_") and offer["gpu_count"] == 1
    if not by_the_gpu or offer["instance_type"] is not None or is_market(offer):
        return [int(offer["gpu_count"])]
    known = catalogued(inputs, offer)
    return [] if known is None else list(known["gpu_counts"])


def is_market(offer: Row) -> bool:
    return (offer["tier"] or "").startswith("marketplace")


def largest_host(inputs: Inputs, offer: Row) -> int:
    return min(max(sold_together(inputs, offer)), inputs.gpus[offer["gpu_id"]]["max_gpus_per_node"] or 1)


def machines(inputs: Inputs, offer: Row, gpus: int, nodes: int) -> int | None:
    """Return the number of offers that a job on ``gpus`` GPUs in ``nodes`` machines rents; None if it cannot,
    or if no such machine is known to be sold."""
    in_offer = int(offer["gpu_count"])
    sold = sold_together(inputs, offer)
    if not sold:
        return None
    per_host = largest_host(inputs, offer)
    if gpus > per_host:
        if per_host == 1 or gpus % per_host or is_market(offer):
            return None
        network, most = network_of(inputs, offer)
        if network is None or (gpus > in_offer and gpus // per_host > (most or 0)):
            return None
    if nodes != max(1, gpus // per_host):
        return None
    wanted = max(gpus, offer["min_gpu_count"] or 1)
    large_enough = [count for count in sold if count >= wanted]
    paid = min(large_enough) if large_enough else math.ceil(wanted / max(sold)) * max(sold)
    return paid // in_offer


def network_of(inputs: Inputs, offer: Row) -> tuple[float | None, float | None]:
    """Gbit/s of one machine and the most machines that are joined, as the offer has it, or the catalogue for
    the largest machine."""
    if offer["node_network_gbps"] is not None:
        return offer["node_network_gbps"], offer["max_nodes"] or math.inf
    known = catalogued(inputs, offer)
    if known is None or largest_host(inputs, offer) != max(known["gpu_counts"]):
        return None, None
    return known["node_network_gbps"], offer["max_nodes"] or known["max_nodes"]


def cents(amount: float) -> Decimal:
    """Rounded as the tables round: to a hundredth of a cent."""
    return Decimal(repr(amount)).quantize(Decimal("0.0001"), ROUND_HALF_UP)


def has_host_memory(inputs: Inputs, plan: Row, offer: Row, units: int) -> bool:
    """True if the weights can pass through the host's memory and offloaded states fit in it."""
    weights_gib = plan["model_download_gib"] / (1 if plan["quantization"] == "none" else 4)
    if plan["offload"]:
        gpu_gb = inputs.gpus[offer["gpu_id"]]["memory_gb"] * offer["gpu_count"]
        assumed_gib = inputs.parameter("host_ram_gib_per_gpu_gb", offer) * gpu_gb
        if units * (offer["ram_gib"] or assumed_gib) < plan["training_state_gib"] + weights_gib:
            return False
    stated_gib = offer["ram_gib"] or math.inf
    return bool(stated_gib * units / plan["node_count"] >= weights_gib)


def priced(inputs: Inputs, workload: Row, plan: Row, offer: Row, speed: float) -> Priced | None:
    """The finished job at a speed in tokens per second; None when the offer cannot serve the plan."""
    units = machines(inputs, offer, plan["gpu_count"], plan["node_count"])
    if units is None or (plan["node_network_gbps"] or 0) > (network_of(inputs, offer)[0] or 0):
        return None

    def p(name: str) -> float:
        return inputs.parameter(name, offer)

    if not has_host_memory(inputs, plan, offer, units):
        return None

    host = p("host_cores_per_gpu") * p("host_usd_per_core_hour")
    host += p("host_ram_gib_per_gpu") * p("host_usd_per_gib_hour")
    host_usd = Decimal(repr(host * units * offer["gpu_count"])).quantize(Decimal("1e-8"), ROUND_HALF_UP)
    rate = float(offer["usd_per_hour"] * units + host_usd)

    state_gb, result_gb, model_gb = (
        plan[column] * GB_PER_GIB for column in ("training_state_gib", "result_gib", "model_download_gib")
    )
    data_gb = workload["tokens"] / (workload["epochs"] or 1) * p("dataset_bytes_per_token") / 1e9
    inbound_gb = p("image_gb") + data_gb + model_gb
    setup = p("setup_seconds") + inbound_gb / (p("download_gbps") / 8)
    train = workload["tokens"] / speed
    work = train * (1 + p("evaluation_share"))
    spot, reserved = offer["price_kind"] == "spot", offer["price_kind"] == "reserved"

    disk_gb = inbound_gb + p("checkpoints_kept") * state_gb + result_gb
    included = (offer["local_disk_gb"] or 0) * p("local_disk_in_price") >= disk_gb
    if included:
        disk_gb = p("checkpoints_kept") * state_gb + result_gb
    lasting = offer["source"] in inputs.lasting_disks and not included
    move = state_gb / (p("checkpoint_gbps") / 8)
    write = p("checkpoint_pause_seconds") + move
    fetch = inbound_gb / (p("download_gbps") / 8)
    failure = Stop(
        per_second=plan["node_count"] / machine_life(p, offer, plan) / 3600,
        again=0 if lasting and offer["tier_class"] != "marketplace" else 1,
    )
    reclaim = Stop(
        per_second=plan["node_count"] / p("hours_between_interruptions") / 3600 if spot else 0,
        again=0 if lasting else 1,
        noticed=p("notice_seconds") >= write,
    )
    boot = p("setup_seconds") + move
    failing = run_seconds(work, write, boot, fetch, [failure])
    running = run_seconds(work, write, boot, fetch, [failure, reclaim])
    failures, reclaims = running * failure.per_second, running * reclaim.per_second
    wait = p("interruption_wait_seconds") + (plan["node_count"] - 1) * p("further_machine_wait_seconds")
    hours = (setup + running + (failures + reclaims) * wait) / 3600
    stops = (setup + running) / 3600 > (offer["max_run_hours"] or math.inf)

    if reserved:
        term = offer["term_days"] * 24
        paid_hours = math.ceil(round(hours * 3600, 3) / 3600 / term) * term
        used_hours = hours
        compute = paid_hours * rate
        lost: tuple[float, ...] = ()
    else:
        step = inputs.stated_or_default(offer, "billing_increment_seconds")
        least = inputs.stated_or_default(offer, "minimum_seconds")
        paid_hours = max(math.ceil(round(setup + work, 3) / step) * step, least) / 3600
        used_hours = (setup + work) / 3600
        compute = paid_hours * rate
        lost = ((failing - work) / 3600 * rate, (running - failing) / 3600 * rate)
    egress = inputs.stated_or_default(offer, "egress_usd_per_gb")
    ingress = p("download_usd_per_gb") + p("download_per_egress_price") * egress
    if offer["download_usd_per_gb"] is not None:
        ingress = float(offer["download_usd_per_gb"])
    downloads = 1 + failures * failure.again + reclaims * reclaim.again
    disk_usd = disk_gb * inputs.stated_or_default(offer, "storage_usd_per_gb_month") * hours
    data_usd = result_gb * egress + inbound_gb * downloads * ingress
    total = sum(map(cents, (compute, *lost, disk_usd / p("hours_per_month"), data_usd)), Decimal(0))
    queued = p("capacity_wait_hours") if offer["price_kind"] == "flex_start" else 0.0
    share = min(1, math.ceil(round(used_hours, 6)) / paid_hours)
    used = share * plan["gpu_count"] / (units * offer["gpu_count"])
    return Priced(total, hours + queued, used, reclaims, stops, rate)


@dataclass(frozen=True)
class Stop:
    """A cause of stops: how often, whether everything is downloaded again, whether work is saved first."""

    per_second: float
    again: int
    noticed: bool = False


def machine_life(p: Any, offer: Row, plan: Row) -> float:
    """Mean hours until one machine of the job fails."""
    up = p("host_reliability") if offer["reliability"] is None else offer["reliability"]
    outages = p("host_outage_hours") * up / (1 - up) if up < 1 else math.inf
    host = min(outages, p("host_hours_between_failures"))
    return 1 / (plan["gpu_count"] / plan["node_count"] / p("gpu_hours_between_failures") + 1 / host)


def run_seconds(work: float, write: float, boot: float, fetch: float, stops: list[Stop]) -> float:
    """Paid seconds of the work with its checkpoints and stops, without the first set-up (Daly 2006)."""
    sudden = [stop for stop in stops if not stop.noticed]
    between = 1 / sum(stop.per_second for stop in sudden)
    share = write / (2 * between)
    best = math.sqrt(2 * write * between) * (1 + math.sqrt(share) / 3 + share / 9) - write
    interval = min(between if share >= 1 else best, work)
    restarts = sum(stop.per_second * (boot + fetch * stop.again) for stop in sudden)
    paid = between * math.exp(restarts) * math.expm1((interval + write) / between) * work / interval
    noticed = (stop.per_second * (write + boot + fetch * stop.again) for stop in stops if stop.noticed)
    return float(paid * math.exp(sum(noticed)))


def ranking(inputs: Inputs, workload: Row, price_kind: str, max_hours: float) -> list[Priced]:
    """All ways that are worth what they cost."""
    ways = []
    key = (workload["model"], workload["method"], workload["seq_len"], workload["lora_rank"])
    offers = defaultdict(list)
    for offer in inputs.offers:
        if offer["price_kind"] == price_kind and inputs.notice(offer) != "sanctions":
            offers[offer["gpu_id"]].append(offer)
    for plan in inputs.plans[key]:
        if plan["gpu_count"] > workload["max_gpus"]:
            continue
        for offer in offers[plan["gpu_id"]]:
            middle, slow = (
                priced(inputs, workload, plan, offer, plan[f"tokens_per_second{end}"]) for end in ("", "_low")
            )
            if (
                middle is None
                or slow is None
                or middle.stops
                or middle.share_used < inputs.parameter("least_share_used", offer)
            ):
                continue
            if middle.reclaims > inputs.parameter("most_interruptions", offer):
                continue
            is_late = slow.hours > max_hours or slow.stops
            is_safe = offer["tier_class"] in ("dedicated", "serverless") and inputs.notice(offer) is None
            is_likely = plan["fit_probability"] >= inputs.parameter("safest_fit_probability", offer)
            is_sure = is_likely and middle.reclaims <= inputs.parameter("safest_most_interruptions", offer)
            way = (plan["gpu_count"], offer["gpu_id"], offer["source"])
            gpu = inputs.gpus[offer["gpu_id"]]
            is_unusual = gpu["vendor"] != "nvidia" or gpu["form_factor"] == "superchip"
            is_unusual = is_unusual or gpu["bf16_dense_tflops"] is None
            is_thin, is_many = plan["evidence"] == "extrapolated", plan["node_count"] > 1
            joined = {None: 1, "bridge": 2}.get(gpu["nvlink_topology"], math.inf)
            has_slow_links = plan["gpu_count"] > plan["node_count"] * joined
            doubts = is_thin + is_many + has_slow_links + (offer["tier_class"] == "resold")
            doubts += 2 * is_unusual + 2 * (not is_likely)
            doubts += middle.reclaims / inputs.parameter("safest_most_interruptions", offer)
            if offer["tier_class"] in ("community", "marketplace"):
                doubts += middle.hours / inputs.parameter("private_host_hours", offer)
            ways.append(
                replace(
                    middle, slow_hours=slow.hours, is_late=is_late,
                    is_safe=is_safe and is_sure and not is_late and not is_unusual,
                    is_unusual=is_unusual, doubts=doubts,
                    is_stock_open=offer["available"] is None,
                    shown=(*way, plan["node_count"], offer["tier"] or "", offer["term_days"] or 0),
                )
            )  # fmt: skip
    return ways


def kept_to(
    max_hours: float, factor: float | None, ways: list[Priced], inputs: Inputs
) -> tuple[list[Priced], bool, tuple[Decimal, float] | None]:
    """The ways that finish in time, whether any does, and the cheaper one of those that do not.

    Where none does, the fastest and those that take up to ``factor`` times as long; none without a factor.
    """
    fastest = min((way.hours for way in ways), default=math.inf)
    most_hours = max_hours if factor is None or fastest <= max_hours else factor * fastest
    longest = most_hours * inputs.parameters["longest_wait_factor", "default"]
    late = min(((way.usd, way.hours) for way in ways if most_hours < way.hours <= longest), default=None)
    kept = [way for way in ways if way.hours <= most_hours]
    least_share = 1 - inputs.parameters["equal_cost_share", "default"]
    saves = late is not None and bool(kept) and float(late[0]) < least_share * float(min(w.usd for w in kept))
    return kept, fastest <= max_hours, late if saves else None


def picked(inputs: Inputs, kept: list[Priced], on_demand: list[Priced]) -> dict[str, Priced]:
    """Return the picks: the least money, the least money and time together, and the surest. The last two cost
    no more than any of ``on_demand`` that takes no longer."""

    def default(name: str) -> float:
        return inputs.parameters[name, "default"]

    def plain(way: Priced) -> float:
        return float(way.usd) + way.hours * worth

    def value(way: Priced) -> float:
        return plain(way) * (1 + way.doubts * default("best_value_doubt_share"))

    def safety(way: Priced) -> float:
        doubt = max(plain(way) * default("safest_doubt_share"), default("hour_worth_usd"))
        stock = 1 + way.is_stock_open * default("unstated_stock_share")
        return plain(way) * stock + (way.doubts + way.reclaims) * doubt

    def porting(way: Priced) -> float:
        return way.is_unusual * default("other_platform_hours") * (way.hourly_usd + worth)

    first = min(kept, key=lambda way: way.order)
    per_hour = float(first.usd) / first.hours
    worth = max(default("hour_worth_usd"), default("hour_worth_share") * per_hour)

    def most_usd(doubts: float) -> float:
        fewer = min(1, first.doubts - doubts) * default("best_value_doubt_share")
        return float(first.usd) * (1 + default("equal_cost_share") + fewer)

    near = [way for way in kept if way.doubts <= first.doubts and float(way.usd) <= most_usd(way.doubts)]
    picks = {"cheapest": min(near, key=lambda way: (way.is_late, value(way), way.order))}
    worth_it = [
        way for way in kept if not any(of.usd < way.usd and of.hours <= way.hours for of in on_demand)
    ]
    if worth_it:
        picks["best_value"] = min(
            worth_it,
            key=lambda way: (way.is_late, value(way) + porting(way), way.order),
        )
    safe = [way for way in worth_it if way.is_safe]
    if safe:
        picks["safest"] = min(safe, key=safety)
    return picks


def instead_of(inputs: Inputs, workload: Row, price_kind: str, max_hours: float) -> list[Priced]:
    """Return the safe ways on demand that ways of another price kind must not be dearer than."""
    if price_kind not in ("reserved", "flex_start", "spot"):
        return []
    return [way for way in ranking(inputs, workload, "on_demand", max_hours) if way.is_safe]


def in_order(kept: list[Priced], picks: dict[str, Priced]) -> list[Priced]:
    """The best way per GPU, count, source, tier and term, and the safest, in order."""
    best: dict[tuple[Any, ...], Priced] = {}
    for way in sorted(kept, key=lambda way: way.order):
        best.setdefault(way.shown, way)
    safest = picks.get("safest")
    extra = [safest] if safest is not None and best[safest.shown] != safest else []
    return sorted([*best.values(), *extra], key=lambda way: way.order)


def deadline(inputs: Inputs, workload: dict[str, Any]) -> tuple[float, float | None]:
    """The deadline in hours, and the factor that a ranking may exceed it by: a stated one is strict."""
    if workload["max_hours"] is not None:
        return workload["max_hours"], None
    is_long = workload["tokens"] > inputs.parameters["long_job_tokens", "default"]
    name = "long_job_deadline_hours" if is_long else "deadline_hours"
    return inputs.parameters[name, "default"], inputs.parameters["missed_deadline_factor", "default"]


def test_random_rankings_agree_to_the_cent(inputs: Inputs, published: duckdb.DuckDBPyConnection) -> None:
    picks = random.Random(20260822)
    kinds = ["on_demand", "on_demand", "flex_start", "spot", "reserved", "serverless"]
    compared = longer_waits = 0
    for _ in range(PICKS):
        workload, price_kind = picks.choice(inputs.workloads), picks.choice(kinds)
        max_hours, factor = deadline(inputs, workload)
        kept, in_time, longer_wait = kept_to(
            max_hours,
            factor,
            ranking(inputs, workload, price_kind, max_hours),
            inputs,
        )
        instead = instead_of(inputs, workload, price_kind, max_hours)
        three = picked(inputs, kept, instead) if kept else {}
        ranks = list(enumerate(in_order(kept, three), start=1))
        actual = published.execute(
            """SELECT rank, pick, total_usd, hours, gpu_count, gpu_id, source, meets_deadline,
                    longer_wait_usd, longer_wait_hours, hours_high, share_used
                 FROM main.cheapest_gpu_per_workload
                WHERE workload = ? AND price_kind = ? AND objective = 'cost'
                  AND day = (SELECT as_of_day FROM main.publication) ORDER BY rank""",
            [workload["workload"], price_kind],
        ).fetchall()
        where = (workload["workload"], price_kind)
        told = {rank: [name for name, way in three.items() if way is one] for rank, one in ranks}
        shown_ranks = sorted(told, key=lambda rank: (rank > 1, not told[rank], rank))[:20]
        assert [row[:2] for row in actual] == [(n, told[n] or None) for n in sorted(shown_ranks)], where
        for row in actual:
            shown, own = row[2:], ranks[row[0] - 1][1]
            assert abs(shown[0] - own.usd) <= Decimal("0.005"), (where, shown, own)
            assert shown[1] == pytest.approx(own.hours, rel=1e-9), (where, shown, own)
            assert shown[2:5] == own.shown[:3], (where, shown, own)
            assert shown[5] == in_time, where
            assert (shown[6] is None) == (longer_wait is None), (where, shown, longer_wait)
            if longer_wait:
                assert abs(shown[6] - longer_wait[0]) <= Decimal("0.005"), (where, shown, longer_wait)
                assert shown[7] == pytest.approx(longer_wait[1], rel=1e-9), (where, shown, longer_wait)
            assert shown[8:] == (pytest.approx(own.slow_hours), pytest.approx(own.share_used)), where
        compared += len(actual)
        longer_waits += longer_wait is not None
    assert compared > 250
    assert longer_waits > 0
