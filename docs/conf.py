"""Settings for the site that `make docs` builds offline from the plain Markdown in docs/.

The menu is built from the links in each index.md, so no page needs a directive that a code host would show as
raw text.
"""

import re
from pathlib import Path, PurePosixPath

from sphinx.application import Sphinx

DOCS = Path(__file__).parent

project = "gpufare"
author = "the gpufare authors"
extensions = ["myst_parser"]
exclude_patterns = ["generate"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "gpufare"
html_show_sphinx = False
html_show_copyright = False

_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)")


def menu(page: str, text: str) -> str:
    """Return a hidden table of contents with an index page's links; for other pages, an empty string."""
    if PurePosixPath(page).name != "index":
        return ""
    linked = dict.fromkeys(target for _, target, _ in _LINK.findall(text) if target.endswith(".md"))
    inside = [target for target in linked if ((DOCS / page).parent / target).resolve().is_relative_to(DOCS)]
    own = [target for target in inside if not target.startswith("..")]
    return "\n".join(["", "```{toctree}", ":hidden:", "", *own, "```", ""])


def with_files_of_the_repository(page: str, text: str) -> str:
    """Return ``text`` with links to files outside docs/ as downloads, and links to folders as plain text.

    Raises:
        ValueError: a link leads out of docs/ to a target that does not exist.
    """

    def copied(link: re.Match[str]) -> str:
        words, target, _ = link.groups()
        path = ((DOCS / page).parent / target).resolve()
        if path.is_relative_to(DOCS):
            return link[0]
        if not path.exists():
            raise ValueError(f"docs/{page}.md: {target} does not exist")
        return f"{{download}}`{words.strip('`')} <{target}>`" if path.is_file() else words

    return _LINK.sub(copied, text)


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = with_files_of_the_repository(page, source[0]) + menu(page, source[0])


def setup(app: Sphinx) -> None:
    """Connect the hook that rewrites each page; Sphinx calls this function."""
    app.connect("source-read", _read)
