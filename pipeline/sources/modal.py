"""Modal: serverless GPUs, charged per GPU-second.

A row is a text followed by a price per second or hour. Rows without a vendor's name are read too: identifying
a GPU is up to the normalizer.
"""

import re

from pipeline.sources import kit

GPU_LABEL = re.compile(r"(?:nvidia|amd)[®™]? [a-z0-9][a-z0-9 ,.+()/®™-]{0,60}", re.IGNORECASE)
BARE_VENDOR = re.compile(r"(?:nvidia|amd)[®™]?", re.IGNORECASE)
UNNAMED_LABEL = re.compile(r"(?=.{0,40}\d)[A-Z](?:[\w/®™]|[ ,()-]{1,2}(?=\w)){1,40}\)?")
"""A model without its vendor ("H100", "RTX PRO 6000 (96 GB)"), which counts only right before a price."""

NO_LABEL = re.compile(
    r"\b(?:cpus?|cores?|memory|ram|storage|volumes?|disks?|network)\b|\b(?:from|at|for|only|just|low as)$",
    re.IGNORECASE,
)


@kit.reader("no GPU with a price per second")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """GPUs with a price per second (or hour, if the page shows that). CPU and memory are skipped, and so are
    GPUs named in running text without a price."""
    texts = _with_vendors(kit.visible_texts(kit.page(answer)))
    rows = (_read_item(item, answer) for item in kit.items(texts, _labels(texts)))
    return (row for row in rows if row is not None)


def _with_vendors(texts: list[str]) -> list[str]:
    """Return the texts with a vendor in an element by itself joined to the text after it."""
    joined: list[str] = []
    for text in texts:
        if joined and BARE_VENDOR.fullmatch(joined[-1]):
            joined[-1] += f" {text}"
        else:
            joined.append(text)
    return joined


def _labels(texts: list[str]) -> list[int]:
    def is_priced(at: int) -> bool:
        price = kit.leading_price(" ".join(texts[at + 1 : at + 4]))
        return price is not None and price.time_unit is not None

    return [
        at
        for at, text in enumerate(texts)
        if GPU_LABEL.fullmatch(text)
        or (UNNAMED_LABEL.fullmatch(text) and not NO_LABEL.search(text) and is_priced(at))
    ]


def _read_item(item: kit.Item, answer: kit.Answer) -> kit.Listing | kit.Reject | None:
    price = kit.leading_price(item.rest)
    if price is None or not price.unit:
        first = " ".join(item.rest.split()[:3])
        if first and kit.is_not_offered(first):
            return item.reject(kit.RejectReason.NOT_OFFERED, f"no price is given: {first!r}", answer)
        if "$" in first:
            detail = f"no price per second in {item.rest[:80]!r}"
            return item.reject(kit.RejectReason.UNREADABLE_PRICE, detail, answer)
        return None
    if price.time_unit is None:
        return item.reject(kit.RejectReason.UNKNOWN_UNIT, f"a price per {price.unit}", answer)
    try:
        unit = kit.native_unit(price.time_unit, "gpu")
        found = kit.cell_price(price.amount)
    except kit.RowError as error:
        return item.reject(error.reason, str(error), answer)
    return found.listing(item.label, 1, answer, price_kind="serverless", native_unit=unit)
