"""Tracing the recipes of the catalogue."""

from pathlib import Path

import click


@click.command("trace-grid")
@click.option("--only", multiple=True, metavar="RECIPE", help="Only these recipes; may be given again.")
@click.option("--model", "models", multiple=True, help="Only these models of the grid.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
@click.option("--fresh", is_flag=True, help="Trace again also what is there and up to date.")
@click.option("--check", is_flag=True, help="Only check that a sample reproduces the table to the byte.")
@click.option(
    "--by-version", is_flag=True, help="Add the installed versions to catalog/recipe_memory_by_version.csv."
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the tables, instead of the catalogue.",
)
def trace_grid(
    only: tuple[str, ...],
    models: tuple[str, ...],
    jobs: int,
    fresh: bool,
    check: bool,
    by_version: bool,
    output: Path | None,
) -> None:
    """Trace the recipes of catalog/recipes.yaml into catalog/traces.csv. Needs gpufare[trace].

    Interrupted, it goes on where it was.
    """
    from pipeline.model.tracing import grid, versions

    if check:
        changed = grid.check(folder=output, jobs=jobs, show=_progress)
        if changed:
            shown = "\n".join(changed[: grid.CHANGES_SHOWN])
            raise click.ClickException(
                f"{len(changed)} values differ from {grid.TRACES_FILE}; if the tracer was meant to change, "
                f"add to REVISIONS in pipeline/model/tracing/kept.py and run gpufare trace-grid:\n{shown}"
            )
        click.echo("the sample reproduces the table to the byte")
        return
    recipes = grid.chosen_recipes(only)
    if by_version:
        count = versions.add_versions(recipes, folder=output, jobs=jobs, show=_progress)
        click.echo(f"{count} rows in {versions.FILE}")
        return
    table = grid.fill(
        recipes, folder=output, models=grid.chosen_models(models), jobs=jobs, fresh=fresh, show=_progress
    )
    click.echo(f"{len(table.rows)} traces, {table.failures.total()} that could not be traced")


def _progress(line: str) -> None:
    click.echo(line, err=True)
