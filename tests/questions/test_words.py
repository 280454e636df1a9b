"""The sentences of an answer and of its reasons, whole, for rows that the sample pages do not have."""

import csv
import io
import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.cli.printing import show
from pipeline.questions.fit import Fit
from pipeline.questions.job import Job, JobError
from pipeline.questions.reasons import percent_text, unranked_text, why_not_text, worse_text
from pipeline.questions.tables import CHEAPEST, table_for_people
from pipeline.questions.why import NAMED, Explanation, age_of_newest, why_not_sentences
from pipeline.questions.words import (
    change_text,
    changed,
    command_line,
    departure,
    explained,
    picks,
    ties,
    total_parts,
    way_text,
)
from pipeline.warehouse.query import Result

GOLDEN: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("sentences.yaml").read_text(encoding="utf-8")
)


def row_of(kind: str, **changes: Any) -> dict[str, Any]:
    """Return a row as macros do, with some columns changed: money is decimal, and structures are JSON."""
    row = GOLDEN[kind] | changes
    for name, value in row.items():
        if value is not None and ("usd" in name or name in ("native_price", "fx_rate")):
            row[name] = Decimal(str(value))
        elif name in ("assumptions", "longer_wait_way"):
            row[name] = json.dumps(value)
    return row


def result_of(row: dict[str, Any]) -> Result:
    return Result(tuple(row), ("VARCHAR",) * len(row), [tuple(row.values())])


def test_an_answer_is_explained_in_whole_sentences() -> None:
    for case in ({"row": {}}, *GOLDEN["otherwise"]):
        sentences = [(GOLDEN["told"] | case)[name] for name in GOLDEN["told"]]
        told = explained(row_of("answer", **case["row"]), case.get("replayed", ()))
        assert told == [sentence for sentence in sentences if sentence], case["row"]


def test_the_picks_say_what_more_money_buys() -> None:
    for case in GOLDEN["picks"]:
        rows = [row_of("answer", **row) for row in case["rows"]]
        assert [*picks(rows), *ties(rows)] == case["told"]


def test_a_probability_is_never_rounded_up() -> None:
    shown = {
        1.0: "100%", 0.9996: "over 99%", 0.99001: "over 99%", 0.99: "99%", 0.896: "89%", 0.29: "29%",
        0.57: "57%", 0.01: "1%", 0.00999: "under 1%", 0.0: "0%",
    }  # fmt: skip
    assert {probability: percent_text(probability) for probability in shown} == shown


def test_the_parts_of_a_total_are_explained() -> None:
    for case in ({"row": {}}, *GOLDEN["parts_otherwise"]):
        expected = {name: (GOLDEN["parts"] | case)[name] for name in GOLDEN["parts"]}
        assert total_parts(row_of("total", **case["row"])) == expected, case["row"]


def test_each_reason_why_a_gpu_is_not_the_answer() -> None:
    def said(**changes: Any) -> str:
        return why_not_text(row_of("why_not", **changes))

    reasons = GOLDEN["why_not_reasons"]
    assert {reason: said(reason=reason) for reason in reasons} == reasons
    codes = GOLDEN["infeasible"]
    assert {code: said(reason="does_not_fit", infeasible_reason=code) for code in codes} == codes
    nowhere = GOLDEN["why_not"]["cheapest"] | {"country": None}
    out: dict[str, Any] = {"reason": "not_offered_so", "cheapest": nowhere}
    # What is nowhere may be where it is asked for.
    assert said(**out).startswith("not known to be sold in the EU, and not sold at spot prices; ")
    assert said(**out).endswith("at Vast.ai (on-demand, country not stated)")
    nearest = "the nearest offer is $1.23 per GPU-hour at Vast.ai (on-demand)"
    for names, asked, sold in GOLDEN["ruled_out"]:
        text = said(**out, constraints=[names], asked=[asked])
        assert sold in text
        asks_place = {"country", "exclude_country", "continent"} & set(names)
        assert asks_place or text == f"not sold {sold}; {nearest}"
    close = {"reason": "does_not_fit", "usable_memory_gib": 23.5}
    assert said(**close, needed_gib=23.56).startswith("0.1 GiB short")
    assert said(**close, needed_gib=23.52) == "0.02 GiB short per GPU (needs 23.52, 23.50 usable)"
    unknown = dict.fromkeys(
        ("fit_probability", "cheapest", "host_gib", "counts", "sold_counts", "constraints", "asked")
    )
    assert said(**unknown, reason="no_price") == reasons["no_price"]


def test_each_reason_why_a_machine_is_not_ranked() -> None:
    def said(**changes: Any) -> str:
        return unranked_text(row_of("machine", **changes))

    missed, reasons = GOLDEN["missed"], GOLDEN["unranked"]
    assert {name: said(missed=[name]) for name in missed} == missed
    assert said(missed=[*missed]) == "; ".join(missed.values())
    assert said(missed=["gpus"], gpu_count=1).startswith("it uses 1 GPU, but")
    bare = {"evidences": None, "fit_probability": None}
    assert {reason: said(**bare, reason=reason) for reason in reasons} == reasons


def test_why_another_gpu_is_not_the_answer() -> None:
    def said(*cards: dict[str, Any], rank: int = 2) -> list[str]:
        best = {"rank": rank, "total_usd": Decimal(10), "hours": 5.0}
        return why_not_sentences(Explanation(best, Result((), (), []), list(cards), 9))

    other = {
        "gpu_id": "l4", "rank": 3, "reason": "ranked", "detail": "too slow", "gpu_count": 2, "provider": "A",
        "hours": 1234.5, "total_usd": Decimal("7.25"),
    }  # fmt: skip
    assert said() == []
    assert said(other | {"rank": 2}) == ["l4 is this answer (rank 2 of 9)."]
    assert said(other | {"rank": 1}, rank=1) == ["l4 is the answer (rank 1 of 9)."]
    assert said(other | {"rank": 1}) == [
        "l4: ranked before rank 2. Rank 1 of 9: 2 of it at A, $7.25 ($2.75 less), 1,234 hours."
    ]
    for usd, more in (("12.5", "$2.50 more"), ("10", "$0.00 more"), ("7.25", "$2.75 less")):
        assert said(other | {"total_usd": Decimal(usd)}) == [
            f"l4: too slow. Rank 3 of 9: 2 of it at A, ${Decimal(usd):,.2f} ({more}), 1,234 hours."
        ]
    out = {"gpu_id": "l4", "rank": None, "reason": "no_price", "detail": "no price"}
    ranked = [{"gpu_id": f"a{rank}", "rank": rank} for rank in range(4, 4 + NAMED + 2)]
    names = "a4 (rank 4), a5 (rank 5), a6 (rank 6), a7 (rank 7), a8 (rank 8)"
    for others, told in (
        ([*ranked[:1], {"gpu_id": "b", "rank": None}], "ranked are a4 (rank 4); 1 is not ranked"),
        (ranked, f"ranked are {names} and 2 more"),
        ([{"gpu_id": "b", "rank": None}] * 2, "2 are not ranked"),
    ):
        assert said(out, *others) == [
            "l4 is not ranked: no price.", f"Of the other cards of that name, {told}.",
        ]  # fmt: skip


def test_what_makes_an_answer_worse_than_another() -> None:
    for changes, reason in GOLDEN["worse"]:
        objective = {name: changes[name] for name in changes if name == "objective"}
        row, best = row_of("worse_answer", **objective), row_of("worse_answer", **changes, rank=1)
        assert worse_text(row, best) == reason


def test_a_fit_is_told_in_sentences() -> None:
    for verdict in ("fits", "tight", "does_not_fit"):
        plan = row_of("plan", verdict=verdict, **({} if verdict == "fits" else {"assumptions": {}}))
        empty = Result((), (), [])
        assert Fit(result_of(plan), empty, empty).sentences() == GOLDEN[verdict]


def test_the_age_of_a_history_is_that_of_its_newest_price() -> None:
    days = Result(("price_day",), ("DATE",), [(date(2026, 8, day),) for day in (20, 22, 1)])
    for today, ago in ((22, "today"), (23, "1 day ago"), (24, "2 days ago")):
        newest = f"the newest price here is from 2026-08-22, {ago}"
        assert age_of_newest(days, date(2026, 8, today)) == newest


def test_a_job_changes_as_an_answer_would_have_it() -> None:
    def but(job: Job, **nearest: str) -> dict[str, Any]:
        return changed(job, {"constraints": [*nearest], "nearest": [*nearest.values()]}).settings

    job = Job(model="m", tokens=1e6, exclude_country="us", gpu="h100")
    assert but(job, exclude_country="US") == {"model": "m", "tokens": 1e6, "gpu": "h100"}
    assert but(job, gpu="l4", assumed_sizes="true") == job.settings | {"gpu": "l4", "assumed_sizes": True}
    exact, few = Job(model="m", gpus=64, min_gpus=64), Job(model="m", gpus=4, min_gpus=2)
    assert but(exact, min_gpus="16") == {"model": "m", "gpus": 16, "min_gpus": 16}
    assert but(few, min_gpus="1") == {"model": "m", "gpus": 4, "min_gpus": 1}
    assert but(few, min_gpus="1", gpus="8") == {"model": "m", "gpus": 8, "min_gpus": 1}
    assert but(Job(model="m", min_gpus=2), min_gpus="1") == {"model": "m", "min_gpus": 1}


def test_a_job_as_the_words_of_a_command() -> None:
    job = Job(model="m", tokens=1e8, max_usd=2.5, assumed_sizes=True, seq_len=2048, gpu=["l4", "H 100"])
    words = ["--model", "m", "--tokens", "100000000", "--max-usd", "2.5", "--assumed-sizes",
             "--seq-len", "2048", "--gpu", "l4,H 100"]  # fmt: skip
    assert command_line(job) == ["gpufare", "cheapest", *words]
    own = Job(Path("a/config.json"), model="m", assumed_sizes=False)
    assert command_line(own, "fit") == ["gpufare", "fit", "--config", "a/config.json"]
    assert way_text({"gpu_count": 2, "gpu": "L4", "price_kind": "own", "provider": "own"}) == (
        "2 x L4 of your own"
    )


def test_changes_are_told_with_their_options() -> None:
    for settings, method, names, nearest, asked, said in GOLDEN["changes"]:
        row = {"constraints": names, "nearest": nearest, "asked": asked}
        assert change_text(Job(**settings), method, row) == said


def test_ways_are_told_from_the_same_training_to_a_run_that_may_fail() -> None:
    job = Job(max_usd=1, exclude_country="us", method="full", seq_len=4096)
    ways = [
        departure(job, {"constraints": names, "nearest": ["1"] * len(names)})
        for names in GOLDEN["departures"]
    ]
    assert ways == sorted(ways)
    assert len(set(ways)) == len(ways) - 2


def test_a_setting_that_no_job_has_is_refused() -> None:
    for settings, says in GOLDEN["refused"]:
        with pytest.raises(JobError) as raised:
            Job(**settings)
        assert str(raised.value) == says


def test_values_of_a_job_are_those_that_macros_take() -> None:
    given = Job(tokens="100M", max_usd=Decimal(5), gpu=["a", "b"], quote=["1 x a at 1", "2 x b"], gpus=None)
    assert given.settings == {
        "tokens": 100e6, "max_usd": Decimal(5), "gpu": "a,b", "quote": "1 x a at 1; 2 x b",
    }  # fmt: skip
    assert given["gpus"] is None
    assert given.but(gpu=None, gpus=2).settings.keys() == {"tokens", "max_usd", "quote", "gpus"}


def test_the_table_shows_paid_idle_gpus_the_country_and_probabilities() -> None:
    def cells(**changes: Any) -> dict[str, Any]:
        answer = result_of(row_of("answer", **changes))
        return next(table_for_people(answer).dicts())

    usual = cells()
    assert len(usual) == len(CHEAPEST)
    assert (usual["rank"], usual["GPU"]) == (" 1 cheapest", "8 x H100 SXM 80 GB")
    assert (usual["provider"], usual["in"], usual["P(fits)"]) == ("Example", "DE", "over 99%")
    other = cells(gpus_billed=104, country=None, tier_class="marketplace", rank=26, pick=None)
    assert (other["rank"], other["GPU"]) == ("26", "8 of 104 x H100 SXM 80 GB")
    assert (other["provider"], other["in"]) == ("Example, private", "?")
    two, three = ["best_value", "safest"], ["cheapest", "best_value", "safest"]
    assert [cells(pick=pick)["rank"] for pick in (two, three)] == [" 1 value+safest", " 1 all three"]


def test_csv_has_plain_decimals(capsys: pytest.CaptureFixture[str]) -> None:
    amounts = (Decimal("0E-8"), Decimal("-0.00000001"), Decimal("2E+2"))
    show(Result(("a", "b", "c"), ("DECIMAL(18,8)",) * 3, [amounts]), "csv")
    assert list(csv.reader(io.StringIO(capsys.readouterr().out)))[1] == ["0.00000000", "-0.00000001", "200"]
