"""Values in the words that people use: each spelling means one job, and a refusal says what to write."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

import gpufare as python
from pipeline.catalog.job_settings import job_settings
from pipeline.contracts.amounts import number_in
from pipeline.home.paths import Home
from pipeline.questions.job import Job
from pipeline.questions.words import machine_lines
from tests.conftest import gpufare
from tests.marts.database import macros
from tests.questions.conftest import OPTIONS, QLORA

WRONG: list[dict[str, str]] = yaml.safe_load(
    Path(__file__).with_name("wrong_inputs.yaml").read_text(encoding="utf-8")
)


def test_a_wrong_value_is_refused_with_what_to_do(sample_home: Home) -> None:
    wrong = {}
    for each in WRONG:
        answer = gpufare(*shlex.split(each["asked"].replace("JOB", shlex.join(OPTIONS))), home=sample_home)
        lines = answer.stderr.splitlines()
        if (answer.returncode, answer.stdout, len(lines)) != (2, "", 1) or each["says"] not in lines[0]:
            wrong[each["asked"]] = (answer.returncode, answer.stdout, answer.stderr)
    assert wrong == {}
    assert len(WRONG) >= 60


def test_a_right_question_without_an_answer_is_no_wrong_value(sample_home: Home, tmp_path: Path) -> None:
    asked = ("explain", *OPTIONS, "--max-usd", "0.01")
    assert gpufare(*asked, home=sample_home).returncode == 1
    assert gpufare("cheapest", *asked[1:], home=sample_home).returncode == 1
    assert gpufare("cheapest", *OPTIONS, home=tmp_path).returncode == 1


NAMES = [
    ({"method": "QLoRA"}, {"method": "qlora"}),
    ({"method": "Full fine-tuning"}, {"method": "full"}),
    ({"method": "Pre-Training"}, {"method": "pretrain"}),
    ({"model": "Llama 3.1 8B"}, {"model": "llama-3.1-8b"}),
    ({"kind": "on-demand,SPOT"}, {"kind": "on_demand,spot"}),
    ({"objective": "TIME"}, {"objective": "time"}),
    ({"tier": "Marketplace"}, {"tier": "marketplace"}),
    ({"continent": "North America"}, {"continent": "north_america"}),
    ({"country": "USA"}, {"country": "us"}),
    ({"country": "European Union"}, {"country": "eu"}),
    ({"gpu": "NVIDIA H100, RTX 4090"}, {"gpu": "h100,rtx-4090"}),
]


def test_every_spelling_of_a_name_is_the_same_job(prices: python.Prices) -> None:
    def completed(changes: dict[str, Any]) -> dict[str, Any]:
        row = prices._session().complete(Job(**QLORA | changes))
        return {name: row[name] for name in row if name not in ("asked", "job_assumptions")}

    assert [completed(spelt) for spelt, _ in NAMES] == [completed(plain) for _, plain in NAMES]


NUMBERS: dict[str, dict[str, float]] = {
    "tokens": {
        "100M": 1e8, "100 million": 1e8, "100m tokens": 1e8, "1.5bn": 1.5e9, "2 trillion": 2e12,
        "1 000 000": 1e6, "1e8": 1e8,
    },
    "examples": {"30k": 30_000, "50 thousand examples": 50_000},
    "tokens_per_example": {"800 tokens": 800},
    "max_usd": {"$20": 20, "$1,000": 1000, "20 USD": 20, "US$ 2.5k": 2500},
    "max_hours": {
        "24h": 24, "2d": 48, "2 days": 48, "90 min": 1.5, "90m": 1.5, "1h30m": 1.5, "1 day and 12h": 36,
        "1 week": 168, "inf": float("inf"),
    },
    "max_age_days": {"2 weeks": 14},
    "max_term_days": {"1 year": 365},
    "min_fit_probability": {"95%": 0.95, "0.9": 0.9, "99.5 percent": 0.995, ".95": 0.95},
    "seq_len": {"8k": 8192, "2048": 2048, "128K tokens": 131_072},
    "gpus": {"8x": 8, "8 GPUs": 8},
    "max_nodes": {"2 nodes": 2},
    "hour_worth": {"$2/h": 2, "2 USD per hour": 2},
    "epochs": {"3x": 3, ".5": 0.5},
    "bid": {"1.5x": 1.5, "150%": 1.5},
}  # fmt: skip


def test_numbers_are_read_as_people_write_them() -> None:
    read = {name: {text: Job(**{name: text})[name] for text in texts} for name, texts in NUMBERS.items()}
    assert read == NUMBERS


def test_the_command_passes_every_spelling_on(sample_home: Home) -> None:
    """Options that are not understood before the job is read would be refused."""
    spelt = shlex.split(
        "--method QLoRA --kind 'On Demand' --max-usd '$1,000' --max-hours 2d --objective Cost --gpus 8x "
        "--seq-len 2k --evidence Interpolated --tier Marketplace --continent 'North America'"
    )
    plain = shlex.split(
        "--kind on_demand --max-usd 1000 --max-hours 48 --objective cost --gpus 8 --seq-len 2048 "
        "--evidence interpolated --tier marketplace --continent north_america"
    )
    limit = ("--limit", "3", "--format", "csv")
    answers = [gpufare("cheapest", *OPTIONS, *words, *limit, home=sample_home) for words in (spelt, plain)]
    assert answers[0].stdout == answers[1].stdout
    assert len(answers[0].stdout.splitlines()) == 4


def test_every_unit_of_a_setting_is_read() -> None:
    for setting in job_settings().values():
        if setting.kind in ("amount", "number", "whole"):
            assert number_in("3", setting.unit) == 3


def test_a_continent_as_country_leaves_out_countries_under_sanctions(prices: python.Prices) -> None:
    """Whoever names a country has its offers ranked, sanctions or not."""
    europe = prices._session().complete(Job(**QLORA, country="Europe"))["constraints"]["country"]["wanted"]
    assert {"DE", "NO", "GB"} <= {*europe}
    assert not {"RU", "US"} & {*europe}


MACHINES = {
    "8xH100 at $2.10/h": (8, "H100", 2.10, "gpu_hour", "USD"),
    "8x H100 @ 2.10": (8, "H100", 2.10, "gpu_hour", "USD"),
    "8 x h100-sxm-80gb at $2.10 per GPU-hour": (8, "h100-sxm-80gb", 2.10, "gpu_hour", "USD"),
    "8xH100 at $2.10/GPU/hr": (8, "H100", 2.10, "gpu_hour", "USD"),
    "8xH100 $16.80/h total": (8, "H100", 16.80, "machine_hour", "USD"),
    "8 H100 for $16.80 per node": (8, "H100", 16.80, "machine_hour", "USD"),
    "H100 x8: €1,900 per hour for all 8": (8, "H100", 1900, "machine_hour", "EUR"),
    "H100 at 2.10": (1, "H100", 2.10, "gpu_hour", "USD"),
    "4090 at 0.12 USD/kWh": (1, "4090", 0.12, "kwh", "USD"),
    "2 x rtx 4090 at 0.30 $/kWh": (2, "rtx 4090", 0.30, "kwh", "USD"),
    "RTX 3090 Ti at 0.25 EUR per kWh": (1, "RTX 3090 Ti", 0.25, "kwh", "EUR"),
    "2 x rtx-4090 at 30 SEK/kWh": (2, "rtx-4090", 30, "kwh", "SEK"),
    "8xH100 at 16.80/h for 8 GPUs": (8, "H100", 16.80, "machine_hour", "USD"),
    "8xH100 at 16.80 per 8-GPU node": (8, "H100", 16.80, "machine_hour", "USD"),
    "8xH100 at 2.10 each": (8, "H100", 2.10, "gpu_hour", "USD"),
    "8xH100 at 16.80/h for 4 GPUs": (8, "H100", 16.80, None, "USD"),
    "8xH100 at 2.10 each for 8 GPUs": (8, "H100", 2.10, None, "USD"),
    "8xH100 at 16.80 for the GPUs": (8, "H100", 16.80, None, "USD"),
    "8xH100 at 400 for 24 hours": (8, "H100", 400, None, "USD"),
    "8xH100 at 400 for 8 hours": (8, "H100", 400, None, "USD"),
    "8xH100 at 400 for 8 nodes": (8, "H100", 400, None, "USD"),
    "4090 x 2 at 0.30 EUR/kWh": (2, "4090", 0.30, "kwh", "EUR"),
    "4090x2 at 0.12": (2, "4090", 0.12, "gpu_hour", "USD"),
    "980 Ti x 2 at 0.12": (2, "980 Ti", 0.12, "gpu_hour", "USD"),
    "H100 × 2 at 2.10": (2, "H100", 2.10, "gpu_hour", "USD"),
    "128 x H100 at 2.10": (128, "H100", 2.10, "gpu_hour", "USD"),
    "8xH100 at $1500/month": (8, "H100", 1500, None, "USD"),
    "8xH100 at $2 per GPU total": (8, "H100", 2, None, "USD"),
}


def test_no_known_name_is_out_of_scope(prices: python.Prices) -> None:
    """A misspelt name that begins like a known one gets the nearest names instead."""
    read = prices._session().ask(
        """WITH known AS (
            SELECT setting, name FROM job_names UNION ALL SELECT 'model', model FROM models
        )
        SELECT count(*), list(name ORDER BY name) FILTER (scope_refusal(setting, name, entries) IS NOT NULL)
        FROM known CROSS JOIN (SELECT list(s) AS entries FROM out_of_scope AS s)"""
    )
    ((known, out_of_scope),) = read.rows
    assert known > 1000
    assert out_of_scope is None


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with macros() as connection:
        yield connection


def test_machines_are_read_as_people_write_them(database: duckdb.DuckDBPyConnection) -> None:
    read = {}
    for text in MACHINES:
        ((machines,),) = database.execute("SELECT machines_in(?)", [text]).fetchall()
        (machine,) = machines
        price = machine["price"]
        read[text] = (
            int(machine["gpus"]), machine["gpu"], float(price["amount"]), price["per"], price["currency"]
        )  # fmt: skip
    assert read == MACHINES


def test_an_answer_says_how_a_machine_was_read(prices: python.Prices) -> None:
    session = prices._session()
    ((euro,),) = session.ask(
        "SELECT arg_max(usd_per_unit, day) FROM exchange_rates WHERE currency = 'EUR'"
    ).rows
    ((card, *_),) = session.ask("SELECT gpu_id, other_cards FROM gpu_readings('h100')").rows
    ((most,),) = session.ask(
        """SELECT arg_max(gpu_id, offers) FROM (
            SELECT gpu_id, count(*) AS offers FROM offers_latest SEMI JOIN gpus USING (gpu_id)
            WHERE ranked AND gpu_id LIKE 'h100-%' GROUP BY gpu_id
        )"""
    ).rows
    assert card == most
    quote, total, own = machine_lines(
        Job(**QLORA, quote="8xH100 at $2.10/h; 8 x h100-sxm-80gb $16.80/h total", own="3090 at 0.30 EUR/kWh"),
        session,
        100,
    )[:3]
    read = "8 x h100-sxm-80gb at $2.10 per GPU-hour, $16.80 per hour for all"
    assert quote.startswith(f"Your quote 8xH100 at $2.10/h is read as {read}; H100 is taken as {card}, ")
    assert total == f"Your quote 8 x h100-sxm-80gb $16.80/h total is read as {read}."
    usd = 0.30 * 0.350 * float(euro)
    assert own == (
        f"Your own 3090 at 0.30 EUR/kWh is read as 1 x rtx-3090 at ${usd:.3g} per GPU-hour (350 W, without "
        f"the rest of the machine; 1 EUR = ${euro.normalize():f})."
    )


def test_a_family_is_its_card_that_most_offers_have(sample_home: Home, prices: python.Prices) -> None:
    says = "h100 is taken as h100-sxm-80gb, the card of that name that most offers have (others: h100-"
    fit = prices.fit(model="llama-3.1-8b", method="lora", gpu="h100")
    assert fit.plan["gpu_id"] == "h100-sxm-80gb"
    assert fit.sentences()[-1].startswith(says)
    compared = prices.compare("h100", "a100")
    assert [*map(str, compared)] == [*map(str, prices.compare("h100-sxm-80gb", "a100"))]
    assert [note.partition(" ")[0] for note in compared.notes] == ["h100", "a100"]
    assert prices.fits_on("h100").notes[0].startswith(says)
    assert not any("is taken as" in note for note in prices.fits_on("h100-sxm-80gb").notes)
    for words in (("fit", "--gpu", "h100"), ("compare", "h100", "l40s")):
        assert says in gpufare(*words, home=sample_home).stderr
    assert prices.cheapest(**QLORA, gpu="h100")[0]["gpu_id"].startswith("h100")
