"""Modal: serverless GPUs, charged per GPU-second.

A row is a string with a vendor's name, followed by a price per second or hour. A price after any other string
becomes a reject, unless that string begins with a word for CPU, memory or storage.
"""

import re

from pipeline.sources import kit

GPU_LABEL = re.compile(r"(?:nvidia|amd)[®™]? [a-z0-9][a-z0-9 ,.+()/®™-]{0,60}", re.IGNORECASE)
NO_GPU = re.compile(r"(?:\w+ )?(?:v?cpus?|cores?|memory|ram|storage|volumes?|disks?)\b", re.IGNORECASE)


@kit.reader("no GPU with a price per second")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """GPUs with a price per second (or per hour, if the page shows that instead). CPU and memory are skipped,
    and so are GPUs named in running text without a price."""
    texts = kit.visible_texts(kit.page(answer))
    starts = [at for at, text in enumerate(texts) if GPU_LABEL.fullmatch(text)]
    rows = (_read_item(item, answer) for item in kit.items(texts, starts))
    yield from (row for row in rows if row is not None)
    yield from _without_vendor(texts, answer)


def _without_vendor(texts: list[str], answer: kit.Answer) -> kit.Rows:
    """Yield a reject for each price per unit of time after a label that may name a GPU without its vendor."""
    for at, label in enumerate(texts):
        if not label[0].isalnum() or GPU_LABEL.fullmatch(label) or NO_GPU.match(label):
            continue
        price = kit.leading_price(" ".join(texts[at + 1 : at + 4]))
        if price and price.time_unit and not price.amount[0].isdigit():
            detail = f"{label[:80]}: a price per {price.unit} without a vendor's name"
            yield kit.Reject(kit.RejectReason.UNREADABLE_ROW, detail, [label, price.amount], answer)


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
