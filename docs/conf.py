"""Settings for the site that `make docs` builds offline from the plain Markdown in docs/.

The menu is built from the links in each index.md, so no page needs a directive that a code host would show as
raw text.
"""

import re
import sys
from pathlib import Path, PurePosixPath

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from docs.generate import joins, results, tables  # noqa: E402 - from the line above
from pipeline.home.paths import Home  # noqa: E402

project = "gpufare"
author = "the gpufare authors"
extensions = ["myst_parser"]
exclude_patterns = ["generate", "static"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "gpufare"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # it is fetched, which browsers forbid pages from disk
html_show_sphinx = False
html_show_copyright = False

_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)")


TABLES = PurePosixPath("reference/tables")


def menu(page: str, text: str) -> str:
    """Return a hidden table of contents for an index page or the page of tables: the linked pages in its
    folder, and the linked indexes of folders below; for other pages, an empty string."""
    path = PurePosixPath(page)
    if path.name != "index" and path != TABLES:
        return ""
    folder = "tables" if path == TABLES else "."
    linked = dict.fromkeys(target for _, target, _ in _LINK.findall(text) if target.endswith(".md"))
    own = [each for each in linked if str(PurePosixPath(each).parent) == folder or each.endswith("/index.md")]
    inside = [each for each in own if not each.startswith("..")]
    return "\n".join(["", "```{toctree}", ":hidden:", "", *inside, "```", ""])


def with_the_demo(page: str, text: str, demo_home: str) -> str:
    """Return a page of tables with drawings of joins and, if ``demo_home`` is not empty, with the results of
    its examples there. Raises QueryError and others if the published file there is missing or older."""
    path = PurePosixPath(page)
    if path == TABLES:
        return text.replace(tables.DRAWING, joins.overview())
    if path.parent != TABLES:
        return text
    answered = results.result(Home(Path(demo_home)), path.name) if demo_home else ""
    return text.replace(tables.DRAWING, joins.drawing(path.name)).replace(tables.RESULT, answered)


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
    text = with_the_demo(page, source[0], app.config.demo_home)
    source[0] = with_files_of_the_repository(page, text) + menu(page, text)


def setup(app: Sphinx) -> None:
    """Connect the hook that rewrites each page; Sphinx calls this function."""
    app.add_config_value("demo_home", "", "env", str)
    app.connect("source-read", _read)
