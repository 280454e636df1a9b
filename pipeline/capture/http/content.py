"""The format of a body, decided by its first bytes and only then by the stated content type.

Hosts are careless about types: JSON price lists arrive as JavaScript, plain text or octet streams. A body
that begins like JSON, HTML or XML can only be in that format, so a mismatched type only causes a warning.
Conversely, a type proves nothing: a login or challenge page is HTML even if it is declared as JSON.
"""

import re

_BEGINNING_BYTES = 4096
"""Number of leading bytes searched for the start of an HTML page, since comments may come first."""

_BOM = b"\xef\xbb\xbf"
_PREAMBLE = re.compile(rb"(?:\s+|<!--.*?-->|<\?xml\b.*?\?>)+", re.DOTALL)
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)

_FORMAT_NAMES = {"json": "JSON", "html": "an HTML page", "xml": "XML", "markup": "a fragment of markup"}


def judged(body: bytes, stated_type: str, expected_types: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Return why a body is refused (None if it is not) and a warning about an accepted body (or None).

    ``stated_type`` is the Content-Type header's type without parameters, in lower case, or ''. A body in an
    expected format is accepted, and a body in any other format refused, regardless of the stated type. If the
    beginning does not reveal the format (CSV, Markdown), or no expected type implies a format (octet-stream),
    the stated type decides.
    """
    if not expected_types:
        return None, None
    found = format_of(body)
    expected = {each.partition("/")[2] for each in expected_types} & _FORMAT_NAMES.keys()
    stated, wanted = stated_type or "no content type", " or ".join(expected_types)
    # A page without <html> is still accepted if the host declares an expected type.
    is_fragment = found == "markup" and bool(expected & {"html", "xml"})
    if found is not None and expected and found not in expected and not is_fragment:
        return f"sent {_FORMAT_NAMES[found]} as {stated}, expected {wanted}", None
    if stated_type in expected_types:
        return None, None
    if found in expected:
        return None, f"sent {wanted} as {stated}; it was read, because it begins as expected"
    return f"sent {stated}, expected {wanted}", None


def format_of(body: bytes) -> str | None:
    """Return the format that the beginning of a body reveals: json (``{`` or ``[``), html (a doctype or
    ``<html>``, possibly after comments and an XML declaration), xml (a declaration), markup (any other tag);
    or None for any other beginning."""
    beginning = body[:_BEGINNING_BYTES].removeprefix(_BOM).lstrip()
    if beginning[:1] in (b"{", b"["):
        return "json"
    if beginning[:1] != b"<":
        return None
    preamble = _PREAMBLE.match(beginning)
    if _HTML.match(beginning, preamble.end() if preamble else 0):
        return "html"
    return "xml" if beginning.startswith(b"<?xml") else "markup"
