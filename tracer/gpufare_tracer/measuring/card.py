"""The cards of this machine according to nvidia-smi: power limit, partitions, and other users."""

import csv
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

FIELDS = ("uuid", "name", "memory.used", "power.limit", "power.default_limit", "mig.mode.current")
BUSY_MIB = 1024
"""The driver and desktop use less; more means another process, perhaps in a container not visible here."""
SECONDS = 30


@dataclass(frozen=True, slots=True)
class Card:
    """One card at one moment; a value is None if the driver does not report that value."""

    uuid: str
    name: str
    used_mib: float
    power_limit_watts: float | None
    default_power_limit_watts: float | None
    is_partitioned: bool
    processes: int
    """Number of compute processes that nvidia-smi lists on the card."""

    @property
    def others(self) -> str:
        """Return a note on other use of the card before the run; empty if there was no other use."""
        if self.processes:
            some = "a process" if self.processes == 1 else f"{self.processes} processes"
            return f"{some} on the card before the run ({self.used_mib / 1024:.1f} GiB in use)"
        if self.used_mib > BUSY_MIB:
            return f"{self.used_mib / 1024:.1f} GiB of the card in use before the run"
        return ""

    @property
    def power(self) -> str:
        """Return a note on a power limit below the maker's default; empty if the limit is not lower."""
        limit, default = self.power_limit_watts, self.default_power_limit_watts
        if limit is None or default is None or limit >= default:
            return ""
        return f"power limited to {limit:.0f} of {default:.0f} W"


class NoCardsError(Exception):
    """nvidia-smi gave no usable answer; the message says why."""


def cards() -> dict[str, Card]:
    """Return the cards of this machine, keyed by UUID without the prefix ``GPU-``. Raises NoCardsError."""
    processes = [uuid for (uuid,) in _ask("--query-compute-apps=gpu_uuid", 1)]
    found = {}
    for uuid, name, used, limit, default, partitioned in _ask(f"--query-gpu={','.join(FIELDS)}", len(FIELDS)):
        found[_plain(uuid)] = Card(
            _plain(uuid), name, _number(used) or 0.0, _number(limit), _number(default),
            partitioned == "Enabled", processes.count(uuid),
        )  # fmt: skip
    return found


def _ask(query: str, columns: int) -> Iterable[list[str]]:
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603 (fixed words)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise NoCardsError(f"nvidia-smi did not answer ({type(error).__name__})") from error
    if answer.returncode:
        last = (answer.stdout.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
        raise NoCardsError(f"nvidia-smi did not answer ({last})")
    rows = [[cell.strip() for cell in row] for row in csv.reader(answer.stdout.splitlines()) if row]
    if any(len(row) != columns for row in rows):
        raise NoCardsError("nvidia-smi answered with other columns than asked for")
    return rows


def _plain(uuid: str) -> str:
    return uuid.removeprefix("GPU-")


def _number(text: str) -> float | None:
    """Return the number in a field; None for [N/A] and [Not Supported]."""
    try:
        return float(text)
    except ValueError:
        return None
