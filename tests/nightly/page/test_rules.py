"""The page beside the macros: 5,000 jobs, and rules of the page's engine broken on purpose."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline.home.paths import Home
from pipeline.page.write import write_report
from pipeline.warehouse.query import reader
from tests.page.equality import HAND, Compared, harsh_market, random_jobs

NOW = datetime.now(UTC)

BROKEN = (
    (
        "Math.ceil(rounded(setup + work, 3) / r.billing_increment_seconds)",
        "(rounded(setup + work, 3) / r.billing_increment_seconds)",
    ),
    (", r.minimum_seconds) / 3600", ", 0) / 3600"),
    (
        "Math.ceil(rounded(hours * 3600, 3) / (r.term_days * 86400))",
        "rounded(hours * 3600, 3) / (r.term_days * 86400)",
    ),
    ("r.local_disk_gb >= disk", "r.local_disk_gb > 0"),
    ("r.persistent_disk && r.disk_outlives_host && !isLocal", "r.persistent_disk && !isLocal"),
    ("r.persistent_disk && !isLocal ? 0 : 1", "r.persistent_disk ? 0 : 1"),
    ("r.notice_seconds >= checkpoint", "r.notice_seconds > 0"),
    ("+ (r.node_count - 1) * r.further_machine_wait_seconds", ""),
    ("Math.exp(noticed * (checkpoint + reclaimRestart))", "1"),
    ("r.node_count / (r.hours_between_failures * 3600)", "1 / (r.hours_between_failures * 3600)"),
    ("? r.checkpoints_kept * state + result : 0", "? r.checkpoints_kept * state : 0"),
    ("const lostHour = isReserved ? 0 : price.hourlyUsd", "const lostHour = price.hourlyUsd"),
    ("inbound * (1 + failures * downloadsPerFailure", "inbound * (1 + failures"),
    ("r.ram_gib / r.node_count >= plan.host_weights_gib", "r.ram_gib >= plan.host_weights_gib"),
    ("r.usd8 * job.bid", "r.usd8"),
    ("* job.bid ** r.bid_exponent", ""),
    ("(r.is_undercut && !everyRental) || ", ""),
    ('miss("sanctions")', ""),
    ("cost.hours - cost.waitHours > rental.max_run_hours", "cost.hours > rental.max_run_hours"),
    ('if (cost.shareUsed < D.p.least_share_used) return "mostly_unused";', ""),
    ('if (cost.interruptions > D.p.most_interruptions) return "interrupted_too_often";', ""),
    ("c.isLateWhenSlow = !c.keepsDeadline &&", "c.isLateWhenSlow = false &&"),
    ("slow.billed > c.cost.billed", "false"),
    ("+ 2 * Number(plan.isTight)", "+ Number(plan.isTight)"),
    ("+ Number(r.has_slow_links)", ""),
    ("r.available !== false && ", ""),
    ("other.hours <= c.hours && ", ""),
    ("D.p.missed_deadline_factor * fastest", "fastest"),
    ("&& c.hours <= mostHours * D.p.longest_wait_factor", ""),
    ("* (1 - D.p.equal_cost_share)", ""),
    ("rounded(c.hours, 2)", "c.hours"),
    ("Number(c.rental.available === null) * D.p.unstated_stock_share", "0"),
    ("if (safest !== null && !ways.includes(safest)) ways.push(safest);", ""),
    ('(c) => c.rental.price_kind === "spot" || c.rental.price_kind === "flex_start", ', ""),
    ("job.hour_worth ?? Math.max(", "Math.max("),
    ("plan.tokensPerSecond * plan.band.low", "plan.tokensPerSecond * plan.band.high"),
    ("Math.min(1, least.doubts - c.doubts)", "least.doubts - c.doubts"),
    ("+ r.capacity_wait_hours;\n  const machineHours", ";\n  const machineHours"),
)
"""A text of engine.js, and what breaks the rule in it."""


@pytest.fixture(scope="module")
def harsh(sample_home: Home, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Compared]:
    """The page of a harsh market, and the answers of the macros to jobs that meet its rules."""
    home = Home(tmp_path_factory.mktemp("harsh"))
    home.published.parent.mkdir(parents=True)
    harsh_market(sample_home.published, home.published)
    page = write_report(home, home.root / "page", NOW)
    with reader(home.published) as connection:
        return page, Compared(connection, [*HAND, *random_jobs(connection, 400, seed=3)])


def test_five_thousand_jobs_have_the_rows_cents_and_picks_of_the_macros(
    sample_home: Home, page_file: Path
) -> None:
    with reader(sample_home.published) as connection:
        compared = Compared(connection, random_jobs(connection, 5000, seed=4))
    assert compared.differences(page_file, NOW) == []


@pytest.mark.parametrize(("rule", "broken"), BROKEN)
def test_a_broken_rule_is_noticed(
    rule: str, broken: str, harsh: tuple[Path, Compared], tmp_path: Path
) -> None:
    page, compared = harsh
    text = page.read_text(encoding="utf-8")
    assert text.count(rule) == 1
    changed = tmp_path / "broken.html"
    changed.write_text(text.replace(rule, broken), encoding="utf-8")
    assert compared.differences(changed, NOW)
