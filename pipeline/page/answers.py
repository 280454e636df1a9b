"""The grid of answers: each workload by price kind, place and tier, ranked by the file's macros.

SQL computes every number; the page only looks answers up. Values are stored by column, and shared values only
once, which keeps the page small.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from typing import Any

import duckdb

from pipeline.page.choices import ANY_KIND, KINDS, PLACES, TIERS, Filter
from pipeline.page.queries import cents, digits, outward, query_text, rows, tenths_of_percent
from pipeline.questions.reasons import why_not_text
from pipeline.questions.words import PICKS, cautions, way_text
from pipeline.warehouse.query import ask

ROWS = 10
"""Number of ranked rows in each answer."""

_VARIANT = """
CREATE OR REPLACE TEMP TABLE report_variant AS
SELECT {columns} FROM main.workloads LIMIT 1
"""

# The candidates and their costs are the same for both rankings: only the order differs.
_RANKED = """
SELECT
    job, coalesce(ranked_kind, '{any_kind}') AS kind, rank, candidate, total_usd, hours, meets_deadline,
    max_hours, keeps_deadline, longer_wait, on_demand_usd, safest_usd, has_short_term, pick
FROM ranked_candidates('{costs}', '{jobs}')
"""


@dataclass(slots=True)
class Index:
    """Numbers things in the order of their first occurrence."""

    things: dict[Any, int] = field(default_factory=dict)

    def of(self, thing: Any) -> int:
        """Return the number of a thing."""
        return self.things.setdefault(thing, len(self.things))


@dataclass(slots=True)
class Grid:
    """The answers collected over all rankings.

    ``ways`` contains the ranked ways to run each workload: GPUs and offer, with a number, total, band and
    hours. ``lists`` contains these numbers in order of rank, by place and tier, price kind and workload;
    ``picks`` contains the way of each of PICKS and its cautions, numbers of ``texts``, likewise;
    ``notes`` contains missed deadlines and the savings from a longer wait. ``planned`` contains the workloads
    and machines whose plans the page shows.
    """

    workloads: list[str]
    machines: Index
    offers: Index
    texts: Index = field(default_factory=Index)
    ways: dict[str, dict[tuple[Any, ...], tuple[Any, ...]]] = field(default_factory=dict)
    lists: list[list[list[list[int]]]] = field(default_factory=list)
    picks: list[list[list[list[list[int]]]]] = field(default_factory=list)
    notes: list[list[Any]] = field(default_factory=list)
    planned: set[tuple[str, int]] = field(default_factory=set)

    def place(self, row: dict[str, Any]) -> int:
        """Return the number of a ranked way among the ways of its workload."""
        ways = self.ways.setdefault(row["job"], {})
        way = (row["gpu_id"], row["gpu_count"], row["node_count"], row["offer"])
        if way not in ways:
            band = outward(row["total_usd_low"], row["total_usd_high"])
            ways[way] = (len(ways), cents(row["total_usd"]), *band, digits(row["hours"]))
        return int(ways[way][0])

    def machine(self, job: str, machine: tuple[Any, ...]) -> int:
        """Return the number of a machine, and note that the page shows the machine's plan for a job."""
        number = self.machines.of(machine)
        self.planned.add((job, number))
        return number


def answers(
    connection: duckdb.DuckDBPyConnection,
    workloads: list[str],
    gpus: Mapping[str, bool],
    machines: Index,
    offers: Index,
) -> dict[str, Any]:
    """Return the rankings of the workloads, and each workload's best answer with every GPU, in the page's
    format. ``gpus`` is true for each GPU of the catalogue with a ranked offer. Machines (gpu_id, gpu_count,
    node_count) and offers (rows of rentals) are added to ``machines`` and ``offers``. Raises QueryError."""
    grid = Grid(workloads, machines, offers)
    ask(connection, "CREATE TEMP TABLE report_plans AS FROM workload_plans()")
    why_not: dict[str, Any] = {}
    for place, tier in product(PLACES, TIERS):
        _rank(connection, place, tier)
        _collect(connection, grid)
        if place.value is None and tier.value is None:
            why_not = _why_not(connection, grid, gpus)
    return {
        "rows": ROWS,
        "kinds": _choices(KINDS),
        "places": _choices(PLACES),
        "tiers": _choices(TIERS),
        "ways": _ways(grid),
        "lists": _lists(grid.lists),
        "picks": _lists(grid.picks),
        "notes": grid.notes,
        "why_not": why_not,
        "plans": _plans(connection, grid),
        "texts": list(grid.texts.things),
    }


def _choices(filters: Sequence[Filter]) -> list[dict[str, Any]]:
    return [{"name": each.name, "label": each.label, "option": each.option} for each in filters]


def _rank(connection: duckdb.DuckDBPyConnection, place: Filter, tier: Filter) -> None:
    """Rank all workloads for a place and a tier, into ``report_ranked`` and ``report_costs``."""
    asked = [each for each in (place, tier) if each.value is not None]
    columns = ["model", "tokens", "'any' AS kind", *(f"? AS {each.setting}" for each in asked)]
    ask(connection, _VARIANT.format(columns=", ".join(columns)), [each.value for each in asked])
    jobs = query_text("jobs")
    for table, is_any in (("report_jobs", False), ("report_any_jobs", True)):
        ask(connection, f"SET VARIABLE report_any = {is_any}")
        ask(connection, f"CREATE OR REPLACE TEMP TABLE {table} AS {jobs}")
    for statement in (
        """CREATE OR REPLACE TEMP TABLE report_candidates AS
            FROM job_candidates('report_jobs', 'report_plans')""",
        """CREATE OR REPLACE TEMP TABLE report_middle AS
            FROM candidate_costs('report_candidates', ['low', 'middle'])""",
        f"CREATE OR REPLACE TEMP TABLE report_ranked AS {_ranked('report_middle', 'report_jobs')}",
        f"INSERT INTO report_ranked {_ranked('report_middle', 'report_any_jobs')}",
        f"""CREATE OR REPLACE TEMP TABLE report_kept AS FROM report_candidates
            SEMI JOIN (FROM report_ranked WHERE rank <= {ROWS} OR pick IS NOT NULL) USING (candidate)""",
        """CREATE OR REPLACE TEMP TABLE report_costs AS
            FROM candidate_costs('report_kept', ['low', 'middle', 'high'])""",
        f"SET VARIABLE report_rows = {ROWS}",
    ):
        ask(connection, statement)


def _ranked(costs: str, jobs: str) -> str:
    return _RANKED.format(any_kind=ANY_KIND, costs=costs, jobs=jobs)


def _collect(connection: duckdb.DuckDBPyConnection, grid: Grid) -> None:
    """Add the first rows of each ranking to the grid, as the rows for the next place and tier."""
    numbers = {job: number for number, job in enumerate(grid.workloads)}
    kinds = [kind.name for kind in KINDS]
    variant = len(grid.lists)
    for lists in (grid.lists, grid.picks):
        lists.append([[[] for _ in grid.workloads] for _ in kinds])
    for (job, kind), found in groupby(rows(connection, "answers"), lambda row: (row["job"], row["kind"])):
        ranked = list(found)
        place = (kinds.index(kind), numbers[job])
        ways = {row["rank"]: grid.place(row) for row in ranked}
        grid.lists[variant][place[0]][place[1]] = [way for rank, way in ways.items() if rank <= ROWS]
        picked = {
            name: [ways[row["rank"]], *map(grid.texts.of, cautions(row))]
            for row in ranked
            for name in row["pick"] or ()
        }
        grid.picks[variant][place[0]][place[1]] = [picked.get(name, []) for name in PICKS]
        first = ranked[0]
        wait = None
        if first["longer_wait_usd"] is not None:
            text = grid.texts.of(way_text(json.loads(first["longer_wait_way"])))
            wait = [cents(first["longer_wait_usd"]), digits(first["longer_wait_hours"]), text]
        if wait or not first["meets_deadline"]:
            grid.notes.append([variant, *place, int(first["meets_deadline"]), wait])


def _ways(grid: Grid) -> dict[str, list[Any]]:
    """Return the columns of the ways, by workload; each total is the difference from the previous one."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("count", "machine", "offer", "total", "low", "high", "hours")
    }
    for job in grid.workloads:
        ways = grid.ways.get(job, {})
        columns["count"].append(len(ways))
        columns["machine"] += [grid.machine(job, way[:3]) for way in ways]
        columns["offer"] += [grid.offers.of(way[3]) for way in ways]
        columns["total"] += differences([shown[1] for shown in ways.values()])
        for place, name in enumerate(("low", "high", "hours"), start=2):
            columns[name] += [shown[place] for shown in ways.values()]
    return columns


def differences(numbers: list[int]) -> list[int]:
    """Return each number minus the previous one."""
    return [number - before for number, before in zip(numbers, [0, *numbers], strict=False)]


def _lists(lists: Sequence[list[list[list[Any]]]]) -> list[Any]:
    """Return the lists, with 0 in place of each list that equals the list for any place and tier."""
    plain, *others = lists
    shorter = [
        [
            [0 if ways == same else ways for ways, same in zip(of_kind, of_plain, strict=True)]
            for of_kind, of_plain in zip(of_variant, plain, strict=True)
        ]
        for of_variant in others
    ]
    return [plain, *shorter]


_RANKED_GPUS = """
CREATE OR REPLACE TEMP TABLE report_ranked_gpus AS
SELECT r.job, r.rank, c.gpu_id, c.gpu_count, c.provider, r.total_usd, r.hours
FROM report_ranked AS r JOIN report_candidates AS c USING (candidate)
WHERE r.kind = ?
"""
_WHY_JOBS = """
CREATE OR REPLACE TEMP TABLE report_why_jobs AS
SELECT * REPLACE ({kinds} AS price_kinds) FROM {jobs}
"""
_REASONS = """
FROM why_not_for('report_why_jobs', 'report_plans', 'report_ranked_gpus')
WHERE reason <> 'ranked'
ORDER BY job, gpu_id
"""


def _why_not(connection: duckdb.DuckDBPyConnection, grid: Grid, gpus: Mapping[str, bool]) -> dict[str, Any]:
    """Return the best answer with each GPU, in order of rank, and the reasons why other GPUs have no answer,
    by price kind and workload, for any place and tier. The reason for a GPU without offers does not depend on
    the price kind."""
    best: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows(connection, "best_of_gpus"):
        best.setdefault((row["kind"], row["job"]), []).append(row)
    columns: dict[str, list[Any]] = {name: [] for name in ("count", "machine", "rank", "total")}
    rented, others = [], []
    for kind in KINDS:
        reasons = _reasons(connection, kind.name, grid)
        for job in grid.workloads:
            ranked = best.get((kind.name, job), [])
            columns["count"].append(len(ranked))
            columns["machine"] += [
                grid.machine(job, (row["gpu_id"], row["gpu_count"], row["node_count"])) for row in ranked
            ]
            columns["rank"] += differences([row["rank"] for row in ranked])
            columns["total"] += differences([cents(row["total_usd"]) for row in ranked])
            codes = {gpu: reasons.get((job, gpu), -1) for gpu in gpus}
            rented.append([code for gpu, code in codes.items() if gpus[gpu]])
            if kind is KINDS[0]:
                others.append([code for gpu, code in codes.items() if not gpus[gpu]])
    return {**columns, "reasons": _each_once(rented), "reasons_of_others": _each_once(others)}


def _reasons(connection: duckdb.DuckDBPyConnection, kind: str, grid: Grid) -> dict[tuple[str, str], int]:
    """Return the number of the reason why a GPU has no answer, by workload and GPU."""
    ask(connection, _RANKED_GPUS, [kind])
    jobs, kinds = ("report_any_jobs", "price_kinds") if kind == ANY_KIND else ("report_jobs", f"['{kind}']")
    ask(connection, _WHY_JOBS.format(kinds=kinds, jobs=jobs))
    reasons = ask(connection, _REASONS).dicts()
    return {(row["job"], row["gpu_id"]): grid.texts.of((row["reason"], why_not_text(row))) for row in reasons}


def _each_once(lists: list[list[int]]) -> dict[str, Any]:
    """Return each distinct list once, and the number of the list at each position."""
    index = Index()
    which = [index.of(tuple(each)) for each in lists]
    return {"which": which, "lists": [list(each) for each in index.things]}


def _plans(connection: duckdb.DuckDBPyConnection, grid: Grid) -> dict[str, Any]:
    """Return the plans on the machines of the answers: one row per recipe and machine, with machines in
    ascending order. Workloads with the same recipe have the same plans."""
    recipes: dict[tuple[str, ...], dict[int, tuple[Any, ...]]] = {}
    evidence, runs = Index(), Index()
    for row in rows(connection, "machines"):
        machine = grid.machines.things.get((row["gpu_id"], row["gpu_count"], row["node_count"]))
        if machine is not None and any((job, machine) in grid.planned for job in row["jobs"]):
            recipes.setdefault(tuple(row["jobs"]), {})[machine] = (
                tenths_of_percent(row["fit_probability"]),
                evidence.of(row["evidence"]),
                runs.of(row["evidence_run"] or ""),
                digits(row["tokens_per_second"]),
                digits(row["needed_gib"]),
            )
    recipe_of = {job: number for number, jobs in enumerate(recipes) for job in jobs}
    names = ("machine", "fit", "evidence", "run", "speed", "needed")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for machines in recipes.values():
        for machine, facts in sorted(machines.items()):
            for name, value in zip(names, (machine, *facts), strict=True):
                columns[name].append(value)
    return {
        "recipe_of": [recipe_of.get(job, -1) for job in grid.workloads],
        "count": [len(machines) for machines in recipes.values()],
        **columns,
        "evidences": list(evidence.things),
        "runs": list(runs.things),
    }
