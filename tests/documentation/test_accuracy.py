"""The page on the model's errors and the README's item are made from the record, or refused."""

from pathlib import Path
from typing import Any

import pytest

from docs.generate import accuracy
from docs.generate.accuracy import WORST, readme, worst


def record(*more: str) -> dict[str, Any]:
    """Return a record with the known sources of each quantity and further, worse ones."""
    reasons = accuracy.read_yaml(accuracy.REASONS, dict[str, dict[str, str]])
    return {
        quantity: {
            "leave_one_family_out_by_source": {
                source: {"runs": 1, "median": median, "mean": median}
                for source, median in (*dict.fromkeys(known, 0.1).items(), *dict.fromkeys(more, 0.2).items())
            }
        }
        for quantity, known in reasons.items()
    }


def test_each_of_the_worst_sources_has_a_reason_and_each_reason_a_source() -> None:
    found = worst(record())
    assert found.count("\n| memory |") == found.count("\n| speed |") == WORST
    with pytest.raises(ValueError, match=r"missed_sources.yaml has no reason for memory: new_lab, other_lab"):
        worst(record("other_lab", "new_lab"))
    unknown = record()
    del unknown["speed"]["leave_one_family_out_by_source"]["languini"]
    with pytest.raises(ValueError, match="has reasons for unknown sources of speed: languini"):
        worst(unknown)


@pytest.mark.parametrize("times", [0, 2])
def test_a_readme_without_the_one_item_to_replace_is_refused(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "README.md"
    page.write_text("- **Memory and speed**: old\n  figures\n" * times + "- **Prices**: new\n")
    monkeypatch.setattr(accuracy, "README", page)
    with pytest.raises(ValueError, match=f"has {times} items"):
        readme()
