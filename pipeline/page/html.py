"""The page: markup, style, scripts and data in one file that loads nothing else."""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

STYLES = ("uplot/uPlot.min.css", "style.css")
SCRIPTS = (
    "uplot/uPlot.iife.min.js", "dom.js", "data.js", "format.js", "job.js", "engine.js", "why.js", "words.js",
    "charts.js", "table.js", "answer.js", "prices.js", "record.js", "main.js",
)  # fmt: skip
"""Scripts in the order in which they run; uPlot draws the charts."""


def page(facts: dict[str, Any], arrays: Mapping[str, bytes]) -> str:
    """Return the whole page, for the facts and arrays of ``pipeline.page.facts``. The data are in base64,
    which contains no character that could end a script."""
    style = "\n".join(_text(name) for name in STYLES)
    scripts = [_text(name) for name in SCRIPTS]
    filled = {
        "policy": _policy(style, scripts),
        "style": f"<style>{style}</style>",
        "data": f'<script type="application/gzip" id="data">{_packed(facts, arrays)}</script>',
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    html = _text("template.html")
    for name, value in filled.items():
        html = html.replace(f"<!-- {name} -->", value)
    return html


def _text(name: str) -> str:
    return (files("pipeline.page") / "assets" / name).read_text(encoding="utf-8")


def _packed(facts: dict[str, Any], arrays: Mapping[str, bytes]) -> str:
    """Return the facts and arrays, compressed, in base64. The same facts always give the same text."""
    sizes = [[name, len(array)] for name, array in arrays.items()]
    text = json.dumps({**facts, "arrays": sizes}, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    head = text.encode()
    whole = b"".join((len(head).to_bytes(4, "little"), head, *arrays.values()))
    return base64.b64encode(gzip.compress(whole, 9, mtime=0)).decode()


def _policy(style: str, scripts: list[str]) -> str:
    """Return a policy that allows only the page's own scripts and style, and lets no text become markup."""
    rules = [
        "default-src 'none'",
        f"script-src {' '.join(_hash(script) for script in scripts)}",
        f"style-src {_hash(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
    ]
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">'


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
