"""The sentences of an answer, for rows that the sample pages do not have."""

import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from pipeline.cli.printing import CHEAPEST, for_people, gpus_paid, show
from pipeline.questions.reasons import percent_text
from pipeline.questions.words import explained
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


def said(**changes: Any) -> str:
    return "\n".join(explained(ROW | changes))


def test_hours_have_their_band_and_days() -> None:
    assert "100.0 hours (4 days; 80.0 to 130.0) at $2.00 per hour." in said()
    assert ", 25.2 hours (25.1 to 25.5) at " in said(hours=25.2, hours_low=25.1, hours_high=25.5)


def test_own_machines_and_quotes_are_worded() -> None:
    own = said(price_kind="own", source="own", provider="own", raw_label="8 x h100 at 2")
    assert own.startswith("8 x H100 SXM 80 GB of your own: $200.50 ")
    assert "at $2.00 of electricity per hour." in own
    assert "\nElectricity as you gave it, 8 x h100 at 2, and nothing else is charged; speed measured." in own
    quote = said(price_kind="quote", source="quote", provider="quote", raw_label="8 x h100 at 0.25")
    assert quote.startswith("8 x H100 SXM 80 GB as quoted: $200.50 ")
    assert "\nPrice as you gave it, 8 x h100 at 0.25; other charges at their defaults; speed" in quote


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({"hours_high": 168.0}, False),
        ({"hours_high": 190.04}, True),
        ({"hours_high": 190.04, "max_hours": float("inf")}, False),
        ({"hours_high": 190.04, "meets_deadline": False}, False),  # said in a sentence already
    ],
)
def test_a_band_beyond_the_deadline_is_a_caution(changes: dict[str, Any], warned: bool) -> None:
    caution = "CAREFUL: at the slow end of its band it takes 190.0 hours, more than the deadline of 168.0."
    assert (caution in said(**changes)) == warned
    assert ("CAREFUL" in said(**changes)) == warned


def test_replayed_price_shows_when_it_was_observed() -> None:
    saved = ROW | {"observed_at": datetime(2026, 8, 22, 6, tzinfo=UTC)}
    line = explained(saved, {"example"})[-1]
    assert "Price seen 2026-08-22 at" in line
    assert "the price was replayed from a saved page" in line
    assert "the price is 92 days old" in line
    assert "Price seen 2026-11-22 at" in said()
    assert "replayed" not in explained(ROW, {"other"})[-1]


def test_needed_memory_excludes_memory_kept_by_the_allocator() -> None:
    assert "It needs 150.2 of 191.7 GiB per GPU" in said()


def test_the_wait_for_capacity_is_told_from_paid_hours() -> None:
    flex = said(
        price_kind="flex_start",
        tier="flex_start",
        hours=25.2,
        hours_low=25.1,
        hours_high=25.5,
        wait_hours=24.0,
    )
    assert "at Example (flex-start): " in flex
    assert "25.2 hours (25.1 to 25.5), 24.0 of them an assumed and unpaid wait for capacity, at $2.00" in flex
    assert "wait" not in said()
    assert "at Example (flex-start, calendar_mode): " in said(price_kind="flex_start", tier="calendar_mode")


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
    lines = said(assumptions='{"max_context": 4096, "offers_without_place": 12}')
    assert "Skipped: 12 offers whose place is not known." in lines
    assert "CAREFUL: sequences longer than the 4096 tokens that the model supports." in lines
    assert "Left out" not in said()


def test_no_line_without_assumptions() -> None:
    assert "Assumed" not in said(assumptions='{"hours_between_failures": 9}')
    assert "Assumed" not in said(assumptions="{}")


@pytest.mark.parametrize(
    ("method", "kept"), [("qlora", "frozen weights"), ("lora", "frozen weights"), ("full", "training state")]
)
def test_tensors_kept_in_host_memory(method: str, kept: str) -> None:
    assert f", its {kept} in host memory, " in said(method=method, offload="cpu")
    assert "host memory" not in said(method=method)


@pytest.mark.parametrize(
    ("probability", "shown"),
    [
        (1.0, "100%"),
        (0.9996, "over 99%"),
        (0.99, "99%"),
        (0.896, "89%"),
        (0.29, "29%"),
        (0.004, "under 1%"),
        (0.0, "0%"),
    ],
)
def test_a_probability_is_never_rounded_up(probability: float, shown: str) -> None:
    assert percent_text(probability) == shown
    assert _table(fit_probability=probability)["P(fits)"] == shown


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
