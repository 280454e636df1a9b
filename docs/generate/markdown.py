"""Markdown that code hosts and Sphinx render alike."""

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; each cell in ``rows`` must be one line of Markdown without unescaped bars."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def text(words: str | None) -> str:
    """Return plain text as one line of Markdown."""
    line = " ".join((words or "").split())
    for mark in "\\|*<`":
        line = line.replace(mark, f"\\{mark}")
    return line


def code(words: str) -> str:
    """Return ``words`` as inline code; an empty string if ``words`` is empty."""
    return f"`{' '.join(words.split())}`".replace("|", "\\|") if words else ""
