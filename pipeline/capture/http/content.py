"""Whether a body is what was asked for: its first bytes decide, and the stated content type comes second.

Hosts state types carelessly: price lists in JSON arrive as JavaScript, plain text or octets. A body that
begins like JSON, HTML or XML can only be that, so a type that does not fit it is a warning. The other way
round a type is no proof: a login or challenge page is an HTML page, also where it is said to be JSON.
"""

import re

_BEGINNING_BYTES = 4096
"""An HTML page may begin with comments; what identifies it comes within these bytes."""

_BOM = b"\xef\xbb\xbf"
_PREAMBLE = re.compile(rb"(?:\s+|<!--.*?-->|<\?xml\b.*?\?>)+", re.DOTALL)
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)

_FORMAT_NAMES = {"json": "JSON", "html": "an HTML page", "xml": "XML", "markup": "a fragment of markup"}


def judged(body: bytes, stated_type: str, expected_types: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Return why a body is not what was asked for, and what is odd about one that may be read all the same;
    None where there is nothing to say.

    ``stated_type`` is the Content-Type header's type without parameters, in lower case, '' where there is
    none. A body of an expected format is right, with any type; one of another format is wrong, with any
    type. Where the beginning says nothing (CSV, Markdown, ``callback({...})``), the type decides.
    """
    if not expected_types:
        return None, None
    found, expected = format_of(body), {_format_of_type(each) for each in expected_types} - {None}
    stated, wanted = stated_type or "no content type", " or ".join(expected_types)
    # A page without <html> is still a page, if the host says so.
    is_fragment = found == "markup" and bool(expected & {"html", "xml"})
    if found is not None and expected and found not in expected and not is_fragment:
        return f"sent {_FORMAT_NAMES[found]} as {stated}, expected {wanted}", None
    if stated_type in expected_types:
        return None, None
    if found in expected:
        return None, f"sent {wanted} as {stated}; it was read, because it begins as expected"
    return f"sent {stated}, expected {wanted}", None


def format_of(body: bytes) -> str | None:
    """What a body begins like: json (``{`` or ``[``), html (a doctype or ``<html>``, also behind comments and
    an XML declaration), xml (a declaration), markup (another tag); None for anything else."""
    beginning = body[:_BEGINNING_BYTES].removeprefix(_BOM).lstrip()
    if beginning[:1] in (b"{", b"["):
        return "json"
    if beginning[:1] != b"<":
        return None
    preamble = _PREAMBLE.match(beginning)
    if _HTML.match(beginning, preamble.end() if preamble else 0):
        return "html"
    return "xml" if beginning.startswith(b"<?xml") else "markup"


def _format_of_type(content_type: str) -> str | None:
    """The format that a content type stands for; None where it does not settle it (JavaScript, octets)."""
    subtype = content_type.partition("/")[2]
    if subtype == "html" or subtype == "xhtml+xml":
        return "html"
    for name in ("json", "xml"):
        if subtype == name or subtype.endswith(f"+{name}"):
            return name
    return None
