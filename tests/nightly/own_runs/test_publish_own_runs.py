"""Own runs correct what their home publishes: plans, rankings and the page."""

import pytest

from pipeline.home.paths import Home
from pipeline.model.own_runs import add_own_run, remove_own_run
from pipeline.page.plans import plans_and_rentals
from pipeline.questions.prices import prices_of, unpublished_runs_note
from pipeline.refresh.demo import sample_days
from pipeline.refresh.publishing import publish_day
from pipeline.refresh.refresh import refresh
from pipeline.warehouse.query import reader
from tests.homes import PAGES
from tests.scenario import noon

DAY = sample_days(PAGES)[0]


def plans_of_own(home: Home) -> int:
    with reader(home.published) as connection:
        query = "SELECT count(*) FROM plans WHERE evidence = 'own' AND is_own_corrected(assumptions)"
        ((count,),) = connection.execute(query).fetchall()
    return int(count)


@pytest.fixture
def home(small_home: Home) -> Home:
    for source in ("ecb", "verda"):
        refresh(small_home, sources=[source], pages=str(PAGES), environment={}, now=noon(DAY))
    return small_home


def test_a_home_publishes_what_its_own_runs_say(home: Home) -> None:
    assert plans_of_own(home) == 0
    with reader(home.published) as connection:
        ((plan,),) = connection.execute(
            "SELECT p FROM plans AS p JOIN rentals USING (gpu_id, gpu_count, node_count)"
            " WHERE verdict = 'fits' AND gpu_count = 1 AND method = 'lora' ORDER BY ALL LIMIT 1"
        ).fetchall()
        assert unpublished_runs_note(home, connection) is None
    run = {
        "run_id": "own-1", "source": "own", "gpu": plan["gpu_id"], "gpu_count": "1", "grad_accum": "8",
        **{name: str(plan[name]) for name in (
            "model", "method", "seq_len", "micro_batch", "checkpointing", "stack", "optimizer",
            "training_precision", "lora_rank",
        )},
        "measured_tokens_per_second_per_gpu": str(plan["tokens_per_second"] * 0.7),
    }  # fmt: skip
    add_own_run(home, run)
    with reader(home.published) as connection:
        assert "without the newest changes to your own runs" in str(unpublished_runs_note(home, connection))
    publish_day(home, DAY, noon(DAY))
    assert plans_of_own(home) > 0
    with reader(home.published) as connection:
        assert unpublished_runs_note(home, connection) is None
        facts, _ = plans_and_rentals(connection)
        assert "own" in {band["evidence"] for band in facts["bands"]}
        ((own, evidence),) = connection.execute(
            "SELECT count(*), (SELECT count(*) FROM model_accuracy WHERE evidence_held_out = 'own')"
            " FROM cheapest_gpu_per_workload WHERE evidence = 'own'"
        ).fetchall()
        assert (own > 0, evidence) == (True, 0), "rankings are corrected; how the model does is not"
    with prices_of(home, None, DAY) as connection:
        plans = "SELECT count(*) > 0 FROM plans"
        assert connection.execute(plans).fetchall() == [(True,)], "published plans are used again"
    remove_own_run(home, "own-1")
    publish_day(home, DAY, noon(DAY))
    assert plans_of_own(home) == 0
