"""The format of a body: its first bytes decide, and the stated content type comes second.

Hosts state types carelessly: price lists in JSON arrive as JavaScript, plain text or octets. A body that
begins like JSON, HTML or XML can only be that, so a type that does not fit it is a warning. Conversely, a
type proves nothing: a login or challenge page is HTML even if it is declared as JSON.
"""

import re

_BEGINNING_BYTES = 4096
"""Bytes within which a page is recognized: HTML may begin with comments."""

_BOM = b"\xef\xbb\xbf"
_PREAMBLE = re.compile(rb"(?:\s+|<!--.*?-->|<\?xml\b.*?\?>)+", re.DOTALL)
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)

_FORMAT_NAMES = {"json": "JSON", "html": "an HTML page", "xml": "XML", "markup": "a fragment of markup"}


def judged(body: bytes, stated_type: str, expected_types: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Return why a body is refused, and a warning about one that is accepted; None for neither.

    ``stated_type`` is the Content-Type header's type without parameters, in lower case, or ''. A body of an
    expected format is accepted with any type, and one of another format refused with any type. If the
    beginning does not show the format (CSV, Markdown), or no expected type implies a format (octet-stream),
    the stated type decides.
    """
    if not expected_types:
        return None, None
    found = format_of(body)
    expected = {each.partition("/")[2] for each in expected_types} & _FORMAT_NAMES.keys()
    stated, wanted = stated_type or "no content type", " or ".join(expected_types)
    # A page without <html> is still a page if the host declares it.
    is_fragment = found == "markup" and bool(expected & {"html", "xml"})
    if found is not None and expected and found not in expected and not is_fragment:
        return f"sent {_FORMAT_NAMES[found]} as {stated}, expected {wanted}", None
    if stated_type in expected_types:
        return None, None
    if found in expected:
        return None, f"sent {wanted} as {stated}; it was read, because it begins as expected"
    return f"sent {stated}, expected {wanted}", None


def format_of(body: bytes) -> str | None:
    """Return the format that the beginning of a body shows: json (``{`` or ``[``), html (a doctype or
    ``<html>``, possibly after comments and an XML declaration), xml (a declaration), markup (another tag);
    None for others."""
    beginning = body[:_BEGINNING_BYTES].removeprefix(_BOM).lstrip()
    if beginning[:1] in (b"{", b"["):
        return "json"
    if beginning[:1] != b"<":
        return None
    preamble = _PREAMBLE.match(beginning)
    if _HTML.match(beginning, preamble.end() if preamble else 0):
        return "html"
    return "xml" if beginning.startswith(b"<?xml") else "markup"
