"""Posts the morning's digest once a day to a chat's incoming webhook.

The webhook's address is a secret: no error and no log shows it.
"""

import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from ipaddress import ip_address

import httpx
import stamina
from filelock import FileLock

from pipeline.capture.http.network import GuardedTransport, reading_until
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.health.digest import Digest
from pipeline.home.disk import UnwritableError, replacing
from pipeline.home.paths import Home
from pipeline.record.incidents import report_incident

WEBHOOK_VARIABLE = "GPUFARE_WEBHOOK_URL"

TIMEOUT_SECONDS = 10.0
"""Limit for one attempt as a whole."""
ATTEMPTS = 3
MAX_CHARACTERS = 4_000
"""Chats cut or reject longer texts."""

LOCK_SECONDS = 120
"""Longer than posting a digest takes, with all attempts."""

# These log whole addresses.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.ERROR)


class WebhookError(GpufareError):
    """The text was not posted; the message gives the reason without the address."""


class _TryAgainError(WebhookError):
    """The host could not be reached, or was busy."""


def send_digest(home: Home, digest: Digest, environment: Mapping[str, str]) -> str:
    """Post a morning's digest unless that day's was posted, and return a line on it.

    Never raises for the webhook or the disk: a failure is an incident. The digest is also posted if the home
    cannot be written, if need be twice: it is needed most then.
    """
    posted = home.digests / f"{digest.day}.txt"
    with ExitStack() as stack:
        with suppress(OSError):
            home.digests.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(home.digests / ".lock", timeout=LOCK_SECONDS))
        if posted.exists():
            return f"the digest of {digest.day} was posted already"
        try:
            if not post(digest.text(), environment):
                return f"no webhook is set in {WEBHOOK_VARIABLE}"
        except WebhookError as error:
            kind, remedy = (
                IncidentKind.DIGEST_NOT_SENT,
                f"check {WEBHOOK_VARIABLE}, then run `gpufare digest`",
            )
            report_incident(home, Incident(kind=kind, day=digest.day, reason=str(error), remedy=remedy))
            return f"the digest was not posted: {error}"
        with suppress(OSError, UnwritableError), replacing(posted) as temporary:
            temporary.write_text(digest.text() + "\n", encoding="utf-8")
    return f"the digest of {digest.day} was posted"


def post(text: str, environment: Mapping[str, str]) -> bool:
    """Post ``{"text": text}``; False if no webhook is set. Raises WebhookError."""
    address = environment.get(WEBHOOK_VARIABLE, "").strip()
    if not address:
        return False
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, ValueError):
        raise WebhookError(f"{WEBHOOK_VARIABLE} is not an address") from None
    if url.scheme != "https" and not (url.scheme == "http" and _is_loopback(url.host)):
        raise WebhookError(f"{WEBHOOK_VARIABLE} must begin with https://")
    for attempt in stamina.retry_context(
        on=_TryAgainError, attempts=ATTEMPTS, wait_initial=0.5, wait_max=5.0, timeout=3 * TIMEOUT_SECONDS
    ):
        with attempt:
            _post(url, text[:MAX_CHARACTERS])
    return True


def _post(url: httpx.URL, text: str) -> None:
    """Post once. Raises WebhookError without a cause: httpx's errors contain the address."""
    webhook = f"the webhook of {WEBHOOK_VARIABLE}"
    only = (url.host, url.port or (443 if url.scheme == "https" else 80))
    try:
        with (
            reading_until(time.monotonic() + TIMEOUT_SECONDS),
            httpx.Client(transport=GuardedTransport(only), timeout=TIMEOUT_SECONDS) as client,
            client.stream("POST", url, json={"text": text}) as answer,
        ):
            status = answer.status_code
    except httpx.HTTPError as error:
        what = f"could not be reached: {type(error).__name__}"
        raise _TryAgainError(f"{webhook} {what} ({ATTEMPTS} attempts)") from None
    if status == 429 or status >= 500:
        raise _TryAgainError(f"{webhook} answered {status} ({ATTEMPTS} attempts)")
    if not 200 <= status < 300:
        raise WebhookError(f"{webhook} answered {status}")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
