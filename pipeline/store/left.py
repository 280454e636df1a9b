"""What a push or a pull left out, and why."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Left:
    """Something that was not sent or fetched: its path in the home or address, the reason, what to do."""

    path: str
    reason: str
    remedy: str

    def line(self) -> str:
        """All of it in one line for people."""
        return f"{self.path}: {self.reason}; {self.remedy}"
