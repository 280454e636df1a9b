"""The daily job: refresh, demo, and the state of the sources."""

import os
import shlex
import shutil
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.completion import names_of
from pipeline.cli.parameters import DAY, FORMAT, today
from pipeline.cli.questions import cheapest
from pipeline.cli.terminal import progress_shown, say, tell
from pipeline.contracts.errors import GpufareError
from pipeline.home import paths
from pipeline.parsing.printable import printable, short_addresses

if TYPE_CHECKING:
    from pipeline.gates.reviews import Verdict

FINDING_INDENT = " " * 16
"""The indent of a finding's continuation lines, which aligns them with the text after its level and check."""

SOURCES = (
    "source", "state", "last_accepted_day", "age_days", "terms", "evidence", "last_attempt_day", "title",
)  # fmt: skip
"""The columns of the sources table as printed for people, most important first."""


@click.command()
@click.option("--day", type=DAY, help="The day to read, no later than today (UTC); by default, today.")
@click.option(
    "--source",
    "sources",
    multiple=True,
    shell_complete=names_of("source"),
    help="Only this source (repeatable).",
)
@click.option(
    "--pages",
    help="Read saved answers from a folder, a replay server (give its URL), or the archive ('archive').",
)
def refresh(day: datetime | None, sources: tuple[str, ...], pages: str | None) -> None:
    """Capture the price pages, read them, build the tables and publish.

    The first refresh, and the first one after a change to the catalogue, then take some minutes to compute
    the plans of every model, and publish again with them; with --pages, they do not.

    The exit code is 0 if something was published, even if some sources failed: their last good prices remain,
    marked with their age. The exit code is 1 if nothing was published, or if no source answered and the
    prices are unchanged. Days after today (UTC) are refused; files dated in the future are ignored.
    """
    from pipeline.refresh.refresh import refresh as run

    home = paths.home()
    with progress_shown("refreshing") as progress:
        report = run(
            home,
            day=day.date() if day else None,
            sources=sources,
            pages=pages,
            environment=os.environ,
            progress=progress,
        )
    for line in report.lines():
        tell(line)
    if failure := report.failure():
        raise click.ClickException(failure)


@click.command()
@click.argument(
    "pages", type=click.Path(exists=True, file_okay=False, path_type=Path), default=paths.PAGES_DIR
)
def demo(pages: Path) -> None:
    """Run the whole pipeline on sample PAGES, as of the day on which the pages were captured.

    The default PAGES come with gpufare. Everything is kept in $GPUFARE_HOME or, by default, in
    ./gpufare-demo, and never mixed with your own prices.
    """
    from pipeline.refresh.demo import demo_home, run

    own = paths.home().root
    os.environ[paths.HOME_VARIABLE] = str(demo_home(os.environ).root)  # the question below reads it, too
    lines: list[str] = []
    try:
        with progress_shown("reading the sample pages") as progress:
            run(pages, paths.home(), lines.append, progress)
    finally:
        for line in lines:
            tell(line)
    asked = "cheapest --model llama-3.1-8b --method qlora --tokens 100M"
    command, to_ask = _command_here(), "FROM gpu_compare"
    tell("\nTry these commands in this folder:")
    for line in (asked, f"sql {shlex.quote(to_ask)}", "export prices"):
        click.echo(f"  {command} {line}")
    if own != paths.home().root:
        tell(f"`gpufare refresh` fetches today's prices into {own}; the demo stays in its own folder.")
    click.echo(f"\n$ {command} {asked}")
    cheapest(asked.split()[1:], standalone_mode=False)


def _command_here() -> str:
    """Return the command that runs gpufare in this folder as this process does: with the same home, and with
    the program's path unless the shell can find the program by name."""
    this = Path(sys.argv[0])
    found = shutil.which(this.name)
    if this.name == "__main__.py":
        program = f"{shlex.quote(sys.executable)} -m pipeline.cli"
    elif found and Path(found).samefile(this):
        program = this.name
    else:
        program = shlex.quote(_from_here(this))
    if not os.environ.get(paths.HOME_VARIABLE):
        return program
    return f"{paths.HOME_VARIABLE}={shlex.quote(_from_here(paths.home().root))} {program}"


def _from_here(path: Path) -> str:
    """Return the path relative to the current folder if it lies in that folder, otherwise the full path."""
    whole, here = path.absolute(), Path.cwd()
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(whole)


@click.command()
@click.option("--all", "every", is_flag=True, help="Read every archived body, not just a sample.")
@click.option("--live", is_flag=True, help="Check live that each source's reader works; publish nothing.")
@click.option("--source", "sources", multiple=True, help="With --live, check only this source (repeatable).")
@click.option("--pages", help="With --live, ask the replay server at this URL.")
@FORMAT
def doctor(
    every: bool,
    live: bool,
    sources: tuple[str, ...],
    pages: str | None,
    form: str,
) -> None:
    """Check the home: disk, clock, archive, record and litter. The exit code is 1 if a check fails.

    With --live, check the sources instead, by refreshing into a temporary home. This refresh keeps to the
    same pauses and terms as any other; its results are judged as if this were the first day, with no earlier
    prices to compare against. The exit code is 1 if any source queried returned no prices.
    """
    if live:
        if every:
            raise click.UsageError("--all checks the home: give either --all or --live")
        _examine_sources(sources, pages, form)
        return
    if sources or pages:
        raise click.UsageError("--source and --pages need --live")
    _examine_home(every, form)


def _examine_home(every: bool, form: str) -> None:
    from pipeline.cli.printing import show, texts
    from pipeline.health.doctor import examine

    with progress_shown("checking") as progress:
        findings = list(examine(paths.home(), now=datetime.now(UTC), every=every, progress=progress))
    if form == "table":
        for finding in findings:
            tell(finding.line(), indent=FINDING_INDENT)
    else:
        columns = ("level", "check", "where", "what", "remedy")
        show(texts(columns, map(asdict, findings)), form)
    failures = sum(finding.level == "fail" for finding in findings)
    if failures:
        raise click.ClickException(f"{failures} checks failed" if failures > 1 else "1 check failed")


def _examine_sources(sources: tuple[str, ...], pages: str | None, form: str) -> None:
    from pipeline.cli.printing import show
    from pipeline.health.doctor.live import examine_live, outcomes_table

    with progress_shown("asking the sources") as progress:
        report = examine_live(
            paths.home(),
            names=sources,
            now=datetime.now(UTC),
            environment=os.environ,
            pages=pages,
            progress=progress,
        )
    if form == "table":
        for line in (*report.source_lines(recorded=False), *report.off):
            tell(line)
    else:
        show(outcomes_table(report), form)
    if report.failed:
        raise click.ClickException(f"{len(report.failed)} of {len(report.asked)} sources asked failed")


@click.group(invoke_without_command=True)
@FORMAT
@click.pass_context
def sources(context: click.Context, form: str) -> None:
    """Show each source's state, last capture, last accepted offers (with age), evidence and terms of use.

    The state shown is the current one, decided by the newest attempt on record (see the source_health table).
    A source whose terms forbid automated reading is off until you enable it or set your own key.
    """
    if context.invoked_subcommand is None:
        _show_sources(form)


@sources.command("enable")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=names_of("source"))
def enable_sources(names: tuple[str, ...]) -> None:
    """Ask these sources from now on, regardless of their terms, and show the terms."""
    from pipeline.refresh.permissions import enable

    for line in enable(names, paths.home(), today(), os.environ):
        tell(printable(line))


@sources.command("disable")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=names_of("source"))
def disable_sources(names: tuple[str, ...]) -> None:
    """Never ask these sources until they are enabled again, even if a key is set."""
    from pipeline.refresh.permissions import disable

    for line in disable(names, paths.home(), today()):
        tell(printable(line))


def _show_sources(form: str) -> None:
    from pipeline.capture.permissions import read_choices
    from pipeline.cli.printing import show
    from pipeline.health.source_states import source_states
    from pipeline.questions.tables import for_people
    from pipeline.warehouse.query import age_note, reader

    home = paths.home()
    states = source_states(home, today())
    if form == "table":
        show(for_people(states, SOURCES), form)
        tell()
        for row in states.dicts():
            if row["why"]:
                tell(short_addresses(f"{row['source']}: {printable(row['why'])}"))
    else:
        show(states, form)
    try:
        with reader(home.published) as connection:
            note = age_note(connection, home, today())
    except GpufareError as problem:
        note = f"note: {problem}"
    say(note)
    say(read_choices(home).problem)


_LABEL = click.option("--label", help="Only prices whose label contains this text.")
_WHY = click.option("--why", default="", help="A note kept with the verdict, such as where you checked it.")


@click.command()
@click.argument("source", shell_complete=names_of("source"))
@_LABEL
@_WHY
def confirm(source: str, label: str | None, why: str) -> None:
    """Believe the prices of SOURCE that are held, after comparing them with its page.

    The verdict counts for these prices of these offers, from the newest reading on. If that reading was
    refused as a whole, it is accepted, unless nothing could be read.
    """
    _review(source, "believed", label, why)


@click.command()
@click.argument("source", shell_complete=names_of("source"))
@_LABEL
@_WHY
def refuse(source: str, label: str | None, why: str) -> None:
    """Never believe the prices of SOURCE that are held now; the last good ones stay until they are stale."""
    _review(source, "refused", label, why)


def _review(source: str, verdict: "Verdict", label: str | None, why: str) -> None:
    from pipeline.refresh.reviewing import review

    for line in review(paths.home(), source, verdict, label, why):
        tell(printable(line))


@click.command()
def digest() -> None:
    """Print the morning's digest, and post it once a day to the webhook set in GPUFARE_WEBHOOK_URL."""
    from pipeline.health.digest import digest_of
    from pipeline.health.webhook import send_digest

    this_morning = digest_of(paths.home(), datetime.now(UTC))
    tell(this_morning.text())
    say(send_digest(paths.home(), this_morning, os.environ))
