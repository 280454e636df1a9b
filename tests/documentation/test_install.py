"""The locks: what `make demo` installs is a part of what `make test` installs."""

import re
import tomllib

from packaging.requirements import Requirement

from tests.documentation.pages import PROJECT


def locked(lock: str) -> dict[str, set[str]]:
    """The packages of a lock by name, each as versions with their markers and hashes."""
    text = re.sub(r"^ *#.*\n", "", (PROJECT / lock).read_text(encoding="utf-8"), flags=re.MULTILINE)
    found: dict[str, set[str]] = {}
    for block in re.split(r"\n(?=\S)", text.strip()):
        found.setdefault(block.partition("==")[0], set()).add(block.replace("\\\n", ""))
    return found


def test_the_demo_installs_a_part_of_the_whole_lock_without_dagster() -> None:
    whole, demo = locked("requirements.lock"), locked("requirements-demo.lock")
    assert {name: each for name, each in demo.items() if whole.get(name) != each} == {}
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    build = project["dependency-groups"]["build"]
    needed = {Requirement(each).name for each in [*project["project"]["dependencies"], *build]}
    assert needed - demo.keys() == {"dagster", "dagster-webserver"}
    assert {Requirement(each).name for each in project["build-system"]["requires"]} < demo.keys()
    page = (PROJECT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    assert f"after `make demo`, with pip itself | {len(demo)} |" in page
