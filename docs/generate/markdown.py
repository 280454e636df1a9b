"""Markdown that code hosts and Sphinx show alike."""

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown, of one line each and without bare bars."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def text(words: str | None) -> str:
    """Words of a comment or of a catalogue, shown as they are in one line of Markdown."""
    line = " ".join((words or "").split())
    for mark in "\\|*<`":
        line = line.replace(mark, f"\\{mark}")
    return line


def code(words: str) -> str:
    """In the typeface of code; nothing for nothing."""
    return f"`{' '.join(words.split())}`".replace("|", "\\|") if words else ""
