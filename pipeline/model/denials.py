"""Tells whether free text denies what a pattern finds in it: ``no CPU offload``, ``offload: none``."""

import re

_LINKS = "and|but|plus|with|without|then|yes|only"
# Up to two words may stand between a denial and what it denies, none of which begins another statement.
_BEFORE = re.compile(
    r"(?:(?<![a-z0-9])(?:(?:no|w/o|without|never|disabl(?:e|es|ing)|(?<!\w )disabled|(?<=with )disabled"
    r"|not(?! (?:only|just|stated|given|known|specified)\b))"
    rf"(?:[ _:-]+(?:using|use of|with|any|the))?(?:[ _-]+(?!(?:{_LINKS})\b)[a-z0-9][\w./-]*?){{0,2}}[ _-]+"
    r"|non[ _-]?|un))$"
)
_PARTS = (
    "(?:kernels?|cpu|optimizers?|states?|param(?:eter)?s?|weights?|masters?|activations?|gradients?|model|mode"
    "|quanti[sz]ation|training|loss|support|device|type|enabled?|use|used|steps?|to|of|the|is|was|are|were)"
)
_AFTER = re.compile(
    rf"""[\w]*(?:[ ._:="'{{(-]+{_PARTS}\b)*[ _:="'{{(-]{{0,4}}"""
    r"(?<![a-z0-9])(?:false|none|never|disabled|off(?![ -]?load)|no(?! ?\w)|0(?![\w.])|unused"
    r"|(?:is|was|are|were|did|does|do)?n[o']t (?:be )?"
    r"(?:used?|using|enabled?|active|activated|applied|on|set|in use|needed|available|supported"
    r"|stated|given|known))\b"
)


def is_denied(found: re.Match[str]) -> bool:
    """True if the text, in lower case, denies what was found: a few words before or after it."""
    text = found.string
    return bool(_BEFORE.search(text[: found.start()]) or _AFTER.match(text, found.end()))


def affirmed(pattern: str | re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the first match of a pattern that the text, in lower case, does not deny; None without one."""
    return next((found for found in re.finditer(pattern, text) if not is_denied(found)), None)


def denied(pattern: str | re.Pattern[str], text: str) -> bool:
    """True if the text, in lower case, denies a match of the pattern."""
    return any(is_denied(found) for found in re.finditer(pattern, text))
