"""docs/index.md: the README's opening (question, answer, picture), and where to go next."""

from pathlib import Path
from string import Template

TEMPLATE = Path(__file__).with_name("index.md.template")
README = Path(__file__).parents[2] / "README.md"


def page() -> str:
    """Return the page. Raises ValueError if the README has no section "Try it" after its opening."""
    title, separator, rest = README.read_text(encoding="utf-8").partition("\n\n")
    opening, found, _ = rest.partition("\n## Try it\n")
    if not found:
        raise ValueError(f"{README} has no section 'Try it'")
    opening = title + separator + opening.replace("](docs/", "](").rstrip()
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(opening=opening)
