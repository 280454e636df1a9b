"""The sentences of an answer and of its reasons, whole, for rows that the sample pages do not have."""

import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.printing import CHEAPEST, for_people, gpus_paid, show
from pipeline.questions.job import Job, JobError
from pipeline.questions.reasons import percent_text, unranked_text, why_not_text
from pipeline.questions.why import Explanation, age_of_newest, why_not_sentences
from pipeline.questions.words import changed, command_line, explained, total_parts, way_text
from pipeline.warehouse.query import Result

ROW: dict[str, Any] = {
    "rank": 1,
    "gpu": "H100 SXM 80 GB",
    "gpu_count": 8,
    "gpus_billed": 8,
    "size_evidence": "offered",
    "provider": "Example",
    "country": "DE",
    "price_kind": "on_demand",
    "raw_label": "H100",
    "tier": None,
    "term_days": None,
    "commitment_usd": None,
    "term_share_used": None,
    "total_usd": Decimal("200.5"),
    "total_usd_low": Decimal(150),
    "total_usd_high": Decimal(260),
    "hours": 100.0,
    "hours_low": 80.0,
    "hours_high": 130.0,
    "wait_hours": 0.1,
    "max_hours": 168.0,
    "meets_deadline": True,
    "longer_wait_usd": None,
    "usd_per_hour": Decimal(2),
    "interruption_usd": Decimal(0),
    "method": "lora",
    "offload": "",
    "memory_gib": 191.7,
    "usable_memory_gib": 191.7,
    "memory_margin_gib": 41.5,
    "fit_probability": 0.9995,
    "verdict": "fits",
    "micro_batch": 4,
    "checkpointing": "full",
    "tokens_per_second": 10000.0,
    "bottleneck": "matmul",
    "evidence": "measured",
    "evidence_run": None,
    "assumptions": '{"is_packed": true}',
    "source": "example",
    "price_day": date(2026, 11, 22),
    "observed_at": datetime(2026, 11, 22, 5, tzinfo=UTC),
    "price_age_days": 0,
    "source_url": "https://example.com/prices",
    "fx_rate": None,
}


WHAT = "8 x H100 SXM 80 GB at Example (on-demand): "
MONEY = "$200.50 ($150.00 to $260.00) for the finished job, "
HOURS = "100.0 hours (4 days; 80.0 to 130.0) at $2.00 per hour."
NEEDS = "It needs 150.2 of 191.7 GiB per GPU and fits with a probability of over 99%, "
PLAN = (
    "with micro-batch 4, checkpointing full{}, and trains 10,000 tokens/s; most of the time goes to matmul."
)
ASSUMED = "Assumed: packed sequences."
SEEN = "Price seen 2026-11-22 at https://example.com/prices; speed measured."
USUAL = [f"{WHAT}{MONEY}{HOURS}", NEEDS + PLAN.format(""), ASSUMED, SEEN]


def test_an_answer_is_explained_in_four_sentences() -> None:
    assert explained(ROW) == USUAL


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"price_kind": "spot", "gpus_billed": 16, "interruption_usd": Decimal("12.345"),
             "tier": "community", "usd_per_hour": Decimal("0.1348")},
            f"8 x H100 SXM 80 GB (16 are paid for) at Example (spot, community): {MONEY}"
            "100.0 hours (4 days; 80.0 to 130.0) at $0.1348 per hour. Interruptions are $12.34 of it.",
        ),
        (
            {"price_kind": "reserved", "tier": "reserved", "term_days": 30, "term_share_used": 0.62851,
             "commitment_usd": Decimal(864), "hours": 72.0},
            f"8 x H100 SXM 80 GB at Example (reserved): {MONEY}72.0 hours (3 days; 80.0 to 130.0) at "
            f"$2.00 per "
            "hour. Whole terms of 30 days are paid for ($864.00); the job uses 62.9% of them.",
        ),
        (
            {"price_kind": "flex_start", "tier": "flex_start", "hours": 71.9, "hours_low": 70.0,
             "hours_high": 73.5, "wait_hours": 24.0},
            f"8 x H100 SXM 80 GB at Example (flex-start): {MONEY}71.9 hours (70.0 to 73.5), 24.0 of them an "
            "assumed and unpaid wait for capacity, at $2.00 per hour.",
        ),
        (
            {"price_kind": "flex_start", "tier": "calendar_mode"},
            f"8 x H100 SXM 80 GB at Example (flex-start, calendar_mode): {MONEY}100.0 hours (4 days; 80.0 to "
            "130.0), 0.1 of them an assumed and unpaid wait for capacity, at $2.00 per hour.",
        ),
        (
            {"price_kind": "own"},
            f"8 x H100 SXM 80 GB of your own: {MONEY}100.0 hours (4 days; 80.0 to 130.0) at $2.00 of "
            "electricity per hour.",
        ),
        ({"price_kind": "quote"}, f"8 x H100 SXM 80 GB as quoted: {MONEY}{HOURS}"),
    ],
)  # fmt: skip
def test_the_cost_is_told_as_it_is_charged(changes: dict[str, Any], sentence: str) -> None:
    assert explained(ROW | changes)[0] == sentence


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        (
            {"meets_deadline": False},
            ["Nothing finishes within 168.0 hours (7 days); the ranking has the fastest answer and those "
            "that "
             "take only a little longer."],
        ),
        (
            {"longer_wait_usd": Decimal("150.4"), "longer_wait_hours": 71.9, "longer_wait_way": json.dumps(
                {"gpu_count": 2, "gpu": "L40S 48 GB", "provider": "Slow", "price_kind": "flex_start"})},
            ["If you can wait, it costs $150.40: 2 x L40S 48 GB at Slow (flex-start) in 71.9 hours."],
        ),
    ],
)  # fmt: skip
def test_a_deadline_missed_or_dear_is_told_after_the_cost(
    changes: dict[str, Any], sentences: list[str]
) -> None:
    assert explained(ROW | changes) == [USUAL[0], *sentences, *USUAL[1:]]


@pytest.mark.parametrize(
    ("method", "kept"), [("qlora", "frozen weights"), ("lora", "frozen weights"), ("full", "training state")]
)
def test_tensors_kept_in_host_memory(method: str, kept: str) -> None:
    plan = PLAN.format(f", its {kept} in host memory")
    assert explained(ROW | {"method": method, "offload": "cpu"})[1] == NEEDS + plan


PAGE = "Price seen 2026-11-22 at https://example.com/prices"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"price_age_days": 2}, f"{PAGE}; speed measured."),
        ({"price_age_days": 3}, f"{PAGE}; speed measured. CAREFUL: the price is 3 days old."),
        (
            {"native_price": Decimal("2.00"), "native_currency": "EUR", "native_unit": "gpu_hour",
             "fx_rate": Decimal("1.1700"), "fx_date": date(2026, 11, 20),
             "source_url": "https://example.com/prices?page=2"},
            f"{PAGE} (2 EUR per gpu_hour, 1 EUR = $1.17 on 2026-11-20); speed measured.",
        ),
        (
            {"size_evidence": "assumed", "verdict": "tight", "fit_probability": 0.896},
            f"{PAGE}; speed measured. CAREFUL: the source does not say that it sells such a machine; the "
            f"fit is "
            "tight, 89%.",
        ),
        (
            {"evidence": "extrapolated", "evidence_run": "run-1"},
            f"{PAGE}; speed extrapolated, closest published run run-1. CAREFUL: the evidence is thin: no "
            "published run is close.",
        ),
        ({"hours_high": 168.0}, f"{PAGE}; speed measured."),
        (
            {"hours_high": 190.04},
            f"{PAGE}; speed measured. CAREFUL: at the slow end of its band it takes 190.0 hours, more "
            f"than the "
            "deadline of 168.0.",
        ),
        ({"hours_high": 190.04, "max_hours": float("inf")}, f"{PAGE}; speed measured."),
        ({"hours_high": 190.04, "meets_deadline": False}, f"{PAGE}; speed measured."),  # said already
        (
            {"price_kind": "own", "raw_label": "8 x h100 at 2"},
            "Electricity as you gave it, 8 x h100 at 2, and nothing else is charged; speed measured.",
        ),
        (
            {"price_kind": "quote", "raw_label": "8 x h100 at 0.25"},
            "Price as you gave it, 8 x h100 at 0.25; other charges at their defaults; speed measured.",
        ),
    ],
)  # fmt: skip
def test_how_far_to_trust_an_answer(changes: dict[str, Any], sentence: str) -> None:
    assert explained(ROW | changes)[-1] == sentence


def test_replayed_price_shows_when_it_was_observed() -> None:
    saved = ROW | {"observed_at": datetime(2026, 8, 22, 6, tzinfo=UTC)}
    assert explained(saved, {"example"})[-1] == (
        "Price seen 2026-08-22 at https://example.com/prices; speed measured. CAREFUL: the price was "
        "replayed "
        "from a saved page: the provider was not asked; the price is 92 days old."
    )
    assert explained(ROW, {"other"})[-1] == SEEN


_PLANNED = {
    "lora_targets": "all_linear",
    "stack": "liger",
    "training_precision": "bf16",
    "optimizer": "adamw_fused",
    "global_batch_tokens": 131072,
    "is_packed": True,
}


@pytest.mark.parametrize(
    ("method", "assumptions", "line"),
    [
        (
            "lora",
            {"seq_len": 2048, "lora_rank": 16, "max_hours": 168.0, **_PLANNED},
            "Assumed: LoRA rank 16 on all linear layers, Liger kernels, bf16 weights (fp16 where the GPU has "
            "no bf16), fused AdamW, packed sequences of 2,048 tokens, 131,072 tokens per optimizer step.",
        ),
        (
            "qlora",
            {"lora_rank": 16, "quantization": "nf4dq", **_PLANNED},
            "Assumed: LoRA rank 16 on all linear layers, base weights in NF4 with double quantization, Liger "
            "kernels, bf16 compute (fp16 where the GPU has no bf16), fused AdamW, packed sequences, "
            "131,072 tokens per optimizer step.",
        ),
        (
            "full",
            {"seq_len": 2048, "optimizer": "adamw_8bit", "training_precision": "bf16"},
            "Assumed: weights, gradients and optimizer moments in bf16 without fp32 masters (fp16 where the "
            "GPU has no bf16), adamw_8bit, sequences of 2,048 tokens.",
        ),
        (
            "pretrain",
            {"training_precision": "amp"},
            "Assumed: fp32 weights under bf16 autocast (fp16 where the GPU has no bf16).",
        ),
        ("lora", {"lora_targets": "all_linear"}, "Assumed: LoRA on all linear layers."),
        (
            "full",
            {"unused_settings": ["lora_rank", "examples"]},
            "Assumed: lora_rank not used by method full, examples not used because tokens is given.",
        ),
        (
            "lora",
            {"model": "m", "method": "lora", "epochs": 3.0, "tokens_per_epoch": 100.0, "is_packed": True},
            "Assumed: planned as m, method lora, packed sequences, 300 tokens are 3.0 epochs of 100.",
        ),
    ],
)
def test_assumptions_take_one_line(method: str, assumptions: dict[str, Any], line: str) -> None:
    lines = explained(ROW | {"method": method, "assumptions": json.dumps(assumptions)})
    assert lines[-2] == line


def test_filtered_offers_and_a_too_short_context_are_reported() -> None:
    assert explained(ROW | {"assumptions": '{"max_context": 4096, "offers_without_place": 1200}'})[2:4] == [
        "Skipped: 1,200 offers whose place is not known.",
        "CAREFUL: sequences longer than the 4096 tokens that the model supports.",
    ]
    for nothing in ('{"hours_between_failures": 9}', "{}"):
        assert explained(ROW | {"assumptions": nothing}) == [*USUAL[:2], SEEN]


def test_a_probability_is_never_rounded_up() -> None:
    shown = {
        1.0: "100%", 0.9996: "over 99%", 0.99001: "over 99%", 0.99: "99%", 0.896: "89%", 0.29: "29%",
        0.57: "57%", 0.01: "1%", 0.00999: "under 1%", 0.0: "0%",
    }  # fmt: skip
    assert {probability: percent_text(probability) for probability in shown} == shown
    assert _table(fit_probability=0.896)["P(fits)"] == "89%"


PARTS: dict[str, Any] = {
    "price_kind": "on_demand", "storage_usd": Decimal("0.1"), "storage_gb": 1234.4,
    "egress_usd": Decimal("0.2"),
    "interruptions": 1.234, "interruption_hours": 2.345, "failures": 0.12345, "failure_hours": 0.456,
    "billed_hours": 2.0, "usd_per_hour": Decimal("0.5"), "host_usd_per_hour": Decimal(0), "setup_hours": 0.17,
    "train_hours": 1.0, "evaluation_hours": 0.8249, "term_days": 30,
}  # fmt: skip


def test_the_parts_of_a_total_are_explained() -> None:
    used = "set-up 0.17, training 1.00, evaluation 0.82"
    unused = ", and 0.01 unused: the minimum, or a started billing step"
    usual = {
        "machine": f"2.00 billed hours x 0.5000 USD: {used}{unused}",
        "interruptions": "1.23 expected, 2.35 paid hours",
        "failures": "0.123 expected, 0.46 paid hours",
        "disk": "1,234 GB while the machine runs",
        "data": "transfer of the result out, and of image, data set and model in, where charged",
        "total": "the sum of the above",
    }
    assert total_parts(PARTS) == usual
    free = {"storage_usd": Decimal(0), "egress_usd": Decimal(0)}
    uncharged = {"disk": "not charged", "data": "downloads and uploads, not charged"}
    assert total_parts(PARTS | free) == usual | uncharged
    own = {"machine": f"2.00 hours of electricity x 0.5000 USD: {used}{unused}",
           "disk": "your own", "data": "your own connection"}  # fmt: skip
    assert total_parts(PARTS | {"price_kind": "own"}) == usual | own
    term = {"machine": "2.00 hours of whole terms of 30 days x 0.5000 USD"}
    assert total_parts(PARTS | {"price_kind": "reserved"}) == usual | term
    host = {"host_usd_per_hour": Decimal("0.125"), "evaluation_hours": 0.8251}
    all_used = (
        "2.00 billed hours x 0.5000 USD and 0.1250 for its host: set-up 0.17, training 1.00, evaluation 0.83"
    )
    assert total_parts(PARTS | host) == usual | {"machine": all_used}


WHY_NOT: dict[str, Any] = {
    "reason": "ranked", "gpu_count": 2, "provider": "Lambda", "infeasible_reason": "too_little_memory",
    "needed_gib": 33.25, "usable_memory_gib": 23.5, "fit_probability": 0.896, "min_fit_probability": 0.9,
    "fits_from_gpus": 4, "max_gpus": 2, "counts": [1, 2], "sold_counts": [4, 8], "planned_gbps": 3200.0,
    "cheapest": {"usd": 1.234, "provider": "Vast.ai", "price_kind": "on_demand", "country": "NO"},
    "network_gbps": 400.0, "planned_host_gib": 1000.1, "host_gib": 99.9,
}  # fmt: skip


def test_each_reason_why_a_gpu_is_not_the_answer() -> None:
    texts = {
        "ranked": "2 of it at Lambda",
        "not_planned": "its specifications are incomplete",
        "does_not_fit": "needs at least 33.2 GiB per GPU, 23.5 usable",
        "might_not_fit": "fits with a probability of at most 89%, but the job asks for 90%",
        "fits_in_another_number": "fits on 4 GPUs or more, but the job allows at most 2",
        "no_price": "no source has a ranked price for it",
        "not_asked_for": "the job leaves it out",
        "not_offered_so": "no offer of it meets the constraints on price kind, place, provider, tier and "
        "age; the "
        "cheapest of all its offers is 1.23 USD per GPU-hour at Vast.ai (on-demand, NO)",
        "not_rented_in_that_number": "fits on 1, 2 GPUs, but can be rented only with 4, 8",
        "network_too_slow": "several machines of it are planned with 3,200 Gbit/s between them, but the "
        "fastest "
        "that can be rented have 400",
        "host_memory_too_small": "each machine needs 1,001 GiB of host memory to load the model, but the "
        "largest "
        "that can be rented has 99",
        "too_late_or_too_expensive": "every offer of it misses the deadline, costs more than the budget, "
        "stops "
        "before the job is done, or is a reservation of which too little would be used",
    }
    assert {reason: why_not_text(WHY_NOT | {"reason": reason}) for reason in texts} == texts
    for code, text in {
        "unsupported_architecture": "current frameworks no longer support this architecture",
        "no_fp8": "no fp8 on this GPU",
        "no_bf16": "no bf16 on this GPU",
        "no_4bit_kernels": "no 4-bit kernels for this vendor",
    }.items():
        assert why_not_text(WHY_NOT | {"reason": "does_not_fit", "infeasible_reason": code}) == text
    nowhere = {"cheapest": WHY_NOT["cheapest"] | {"country": None}, "reason": "not_offered_so"}
    assert why_not_text(WHY_NOT | nowhere).endswith("at Vast.ai (on-demand)")
    unknown = dict.fromkeys(("fit_probability", "cheapest", "host_gib", "counts", "sold_counts"))
    assert why_not_text(WHY_NOT | unknown | {"reason": "no_price"}) == texts["no_price"]


MACHINE: dict[str, Any] = {
    "reason": "not_as_asked", "missed": None, "infeasible_reason": "too_little_memory", "needed_gib": 33.25,
    "usable_memory_gib": 23.5, "gpu_count": 4, "max_gpus": 2, "min_gpus": 8, "node_count": 2, "max_nodes": 1,
    "fit_probability": 0.896, "min_fit_probability": 0.905, "evidence": "extrapolated", "gpus": 16,
    "evidences": ["measured", "traced"], "hours": 1234.56, "max_hours": 1000.5,
    "total_usd": Decimal("1234.567"),
    "max_usd": 1000.0,
}  # fmt: skip


def test_each_reason_why_a_machine_is_not_ranked() -> None:
    missed = {
        "gpu": "the job leaves this GPU out",
        "gpus": "it uses 4 GPUs, but the job allows at most 2",
        "min_gpus": "it uses 4 GPUs, but the job asks for at least 8",
        "max_nodes": "it is 2 machines, but the job allows at most 1",
        "min_fit_probability": "it fits with a probability of 89%, but the job asks for 90.5%",
        "evidence": "its speed is extrapolated, but the job asks for at least traced",
        "max_hours": "it takes 1,234.6 hours, but the deadline is 1,000.5 hours",
        "max_usd": "it costs 1,234.57 USD, but the budget is 1,000.00 USD",
    }
    assert {name: unranked_text(MACHINE | {"missed": [name]}) for name in missed} == missed
    assert unranked_text(MACHINE | {"missed": [*missed]}) == "; ".join(missed.values())
    reasons = {
        "does_not_fit": "the job does not fit: needs at least 33.2 GiB per GPU, 23.5 usable",
        "beaten": "another answer beats it in cost and hours",
        "another_costs_less": "another such machine costs less with as many GPUs",
        "too_many_gpus": "it has 16 GPUs, but the job allows at most 2",
        "not_planned": "there is no plan for this number of these GPUs, or their specifications are "
        "incomplete",
    }
    bare = MACHINE | {"evidences": None, "fit_probability": None}
    assert {reason: unranked_text(bare | {"reason": reason}) for reason in reasons} == reasons


def test_why_another_gpu_is_not_the_answer() -> None:
    def said(*cards: dict[str, Any]) -> list[str]:
        best = {"rank": 2, "total_usd": Decimal(10), "hours": 5.0}
        return why_not_sentences(Explanation(best, Result((), (), []), list(cards), 9))

    other = {"gpu_id": "l4", "rank": 3, "reason": "ranked", "detail": "2 of it at A", "hours": 1234.5}
    assert said() == []
    assert said(other | {"rank": 2}) == ["l4 is this answer (rank 2 of 9)."]
    for usd, more in (("12.5", "$2.50 more"), ("10", "$0.00 more"), ("7.25", "$2.75 less")):
        assert said(other | {"total_usd": Decimal(usd)}) == [
            f"l4 has rank 3 of 9: 2 of it at A costs ${Decimal(usd):,.2f}, {more}, and takes 1,234.5 hours "
            "against 5.0."
        ]
    out = {"gpu_id": "l4", "rank": None, "reason": "no_price", "detail": "no price"}
    assert said(out, {"gpu_id": "a"}, {"gpu_id": "b"}) == [
        "l4 is not in the ranking: no price.",
        "The other cards of that name did no better: a, b.",
    ]
    first = Explanation({"rank": 1}, Result((), (), []), [{"gpu_id": "l4", "rank": 1}], 9)
    assert why_not_sentences(first) == ["l4 is the answer (rank 1 of 9)."]


def test_the_age_of_a_history_is_that_of_its_newest_price() -> None:
    days = Result(
        ("price_day",), ("DATE",), [(date(2026, 8, 20),), (date(2026, 8, 22),), (date(2026, 8, 1),)]
    )
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
    assert but(exact, min_gpus="16") == {"model": "m", "gpus": "16", "min_gpus": "16"}
    assert but(few, min_gpus="1") == {"model": "m", "gpus": 4, "min_gpus": "1"}
    assert but(few, min_gpus="1", gpus="8") == {"model": "m", "gpus": "8", "min_gpus": "1"}
    assert but(Job(model="m", min_gpus=2), min_gpus="1") == {"model": "m", "min_gpus": "1"}


def test_a_job_as_the_words_of_a_command() -> None:
    job = Job(model="m", tokens=1e8, max_usd=2.5, assumed_sizes=True, seq_len=2048, gpu=["l4", "H 100"])
    words = ["--model", "m", "--tokens", "100000000", "--max-usd", "2.5", "--assumed-sizes",
             "--seq-len", "2048", "--gpu", "l4,H 100"]  # fmt: skip
    assert command_line(job) == ["gpufare", "cheapest", *words]
    own = Job(Path("a/config.json"), model="m", assumed_sizes=False)
    assert command_line(own, "fit") == ["gpufare", "fit", "--config", "a/config.json"]
    assert (
        way_text({"gpu_count": 2, "gpu": "L4", "price_kind": "own"} | {"provider": "own"})
        == "2 x L4 of your own"
    )


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"seq_length": 1}, "a job has no setting 'seq_length'; did you mean seq_len?"),
        ({"max_gpus": 4}, "a job has no setting 'max_gpus'; did you mean gpus?"),
        ({"gpu_s": 4}, "a job has no setting 'gpu_s'; did you mean gpus or gpu or min_gpus?"),
        ({"zzzzzz": 4}, "a job has no setting 'zzzzzz'"),
        ({"tokens": "100X"}, "tokens: '100X' is not a number such as 100M"),
        ({"country": ["de", None]}, "country must be text, not None"),
    ],
)
def test_a_setting_that_no_job_has_is_refused(settings: dict[str, Any], says: str) -> None:
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


def test_the_table_shows_paid_idle_gpus_and_the_country() -> None:
    assert _table()["count"] == "8"
    assert _table(gpus_billed=104)["count"] == "8 of 104"
    assert _table()["in"] == "DE"


def _table(**changes: Any) -> dict[str, Any]:
    row = ROW | changes
    names = tuple(row)
    answer = Result(names, ("VARCHAR",) * len(names), [tuple(row.values())])
    shown = for_people(answer, CHEAPEST, gpu_count=gpus_paid)
    assert len(shown.columns) == len(CHEAPEST)
    return next(shown.dicts())


def test_csv_has_plain_decimals(capsys: pytest.CaptureFixture[str]) -> None:
    amounts = (Decimal("0E-8"), Decimal("-0.00000001"), Decimal("2E+2"))
    show(Result(("a", "b", "c"), ("DECIMAL(18,8)",) * 3, [amounts]), "csv")
    assert list(csv.reader(io.StringIO(capsys.readouterr().out)))[1] == ["0.00000000", "-0.00000001", "200"]
