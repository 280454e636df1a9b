"""What the object store lacks of this home, as far as this machine knows: no request is sent."""

from collections.abc import Iterator

from pipeline.contracts.errors import GpufareError
from pipeline.health.doctor.finding import Examination, Row
from pipeline.home.disk import size_text
from pipeline.store.address import STORE_VARIABLE, store_address
from pipeline.store.behind import behind


def behind_store(x: Examination) -> Iterator[Row]:
    """How far the store is behind."""
    try:
        address = store_address(x.environment)
        if address is None:
            yield "ok", f"no object store keeps this home ({STORE_VARIABLE} is not set)", "", ""
            return
        lacking = behind(x.home, address)
    except GpufareError as error:
        yield "fail", str(error), "", ""
        return
    push = "`gpufare store push` sends it, and each refresh"
    if lacking is None:
        yield "warn", "nothing of this home was sent to the store yet", address, push
        return
    if lacking.nothing:
        yield "ok", f"the store has everything (push {lacking.number}, {lacking.pushed_at[:16]})", address, ""
        return
    published = ", and the published file" if lacking.published else ""
    what = f"{lacking.captures} captures and {lacking.files} files of the record{published}"
    since = f"complete last at {lacking.complete_at[:16]}" if lacking.complete_at else "never complete yet"
    yield "warn", f"the store lacks {what} ({size_text(lacking.size_bytes)}), {since}", address, push
