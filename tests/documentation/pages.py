"""The blocks of the README and of docs/ that people copy: commands, Python, SQL."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docs.generate import DOCS
from docs.generate import PAGES as GENERATED

PROJECT = Path(__file__).parents[2]
README = PROJECT / "README.md"
WRITTEN = [README, PROJECT / "CONTRIBUTING.md"] + [
    page for page in sorted(DOCS.rglob("*.md")) if str(page.relative_to(DOCS)) not in GENERATED
]
"""Every hand-written page; generated ones are tested through what they are generated from."""

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_NOT_RUN = re.compile(r"^ *\*Not run by the tests[^*]+\*\s*\Z", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of a page.

    ``page`` is a path relative to the repository; ``is_not_run`` if the page states that tests do not run it.
    """

    page: str
    language: str
    text: str
    is_not_run: bool

    @property
    def commands(self) -> list[str]:
        """Return a command per line; a line that ends in a backslash continues on the next."""
        return [line.strip() for line in self.text.replace("\\\n", " ").splitlines() if line.strip()]


def blocks(language: str) -> list[Block]:
    """Return the blocks of a language in all pages, in order."""
    return [block for page in WRITTEN for block in _blocks(page) if block.language == language]


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        lines = (line.removeprefix(found["indent"]) for line in found["text"].splitlines(keepends=True))
        is_not_run = _NOT_RUN.search(text[: found.start()].rpartition("```")[2]) is not None
        yield Block(str(page.relative_to(PROJECT)), found["language"], "".join(lines), is_not_run)


def commands(start: str) -> list[str]:
    """Return the commands of all pages that begin with ``start``, each once and in order."""
    found = [
        command for block in blocks("console") for command in block.commands if command.startswith(start)
    ]
    assert found, f"no page has a command that begins with {start!r}"
    return list(dict.fromkeys(found))
