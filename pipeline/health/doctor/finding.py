"""The input and the result of the doctor's checks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Literal, get_args

from pipeline.contracts.progress import Progress
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable

Level = Literal["ok", "warn", "fail"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The levels, from best to worst."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the result: what was found and where, the remedy, and the check that found it."""

    level: Level
    what: str
    where: str = ""
    remedy: str = ""
    check: str = ""

    def line(self) -> str:
        """Return the finding as one readable line."""
        where = f"{printable(self.where)}: " if self.where else ""
        remedy = f" -> {printable(self.remedy)}" if self.remedy else ""
        return f"{self.level:<5} {self.check:<9} {where}{printable(self.what)}{remedy}"


@dataclass(frozen=True, slots=True)
class Examination:
    """The input of every check. ``now`` is in UTC."""

    home: Home
    now: datetime
    every: bool
    progress: Progress

    @property
    def today(self) -> date:
        """The day of the examination (UTC)."""
        return self.now.date()

    def short(self, path: Path) -> str:
        """Return a path as a string, relative to the home if the path is inside it."""
        return str(path.relative_to(self.home.root)) if path.is_relative_to(self.home.root) else str(path)


Check = Callable[[Examination], Iterable[Finding]]
