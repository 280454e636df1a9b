"""What a push and a pull both report."""

from dataclasses import dataclass, field

from pipeline.storage.left import Left
from pipeline.storage.publication import Publication


@dataclass(slots=True)
class TransferReport:
    """What went between a home and its store. ``conflicts`` and ``problems`` are what did not."""

    address: str
    number: int = 0
    captures: int = 0
    files: int = 0
    requests: int = 0
    conflicts: list[Left] = field(default_factory=list)
    problems: list[Left] = field(default_factory=list)
    publication: Publication | None = None
    publication_note: str = ""

    @property
    def complete(self) -> bool:
        """Whether all that was to go went."""
        return not self.conflicts and not self.problems

    @property
    def note(self) -> str:
        """What there is to say of the published file, as the end of a line; '' for nothing."""
        return f"; {self.publication_note}" if self.publication_note else ""
