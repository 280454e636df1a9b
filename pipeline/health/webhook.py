"""Posts a text to a chat's incoming webhook. Its address is a secret: no error and no log shows it."""

import logging
import time
from collections.abc import Mapping
from ipaddress import ip_address

import httpx
import stamina

from pipeline.capture.http.network import GuardedTransport, reading_until
from pipeline.contracts.errors import GpufareError

WEBHOOK_VARIABLE = "GPUFARE_WEBHOOK_URL"

TIMEOUT_SECONDS = 10.0
"""Of one attempt as a whole."""
ATTEMPTS = 3
MAX_CHARACTERS = 4_000
"""Chats cut longer texts, or refuse them."""

# These log whole addresses.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.ERROR)


class WebhookError(GpufareError):
    """The text was not posted: says why, without the address."""


class _TryAgainError(Exception):
    """The host could not be reached, or asks for patience."""


def post(text: str, environment: Mapping[str, str]) -> bool:
    """Post ``{"text": text}``; False where no webhook is set. Raises WebhookError."""
    address = environment.get(WEBHOOK_VARIABLE, "").strip()
    if not address:
        return False
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, ValueError):
        raise WebhookError(f"{WEBHOOK_VARIABLE} is not an address") from None
    if url.scheme != "https" and not (url.scheme == "http" and _is_loopback(url.host)):
        raise WebhookError(f"{WEBHOOK_VARIABLE} must begin with https://")
    try:
        for attempt in stamina.retry_context(
            on=_TryAgainError, attempts=ATTEMPTS, wait_initial=0.5, wait_max=5.0, timeout=3 * TIMEOUT_SECONDS
        ):
            with attempt:
                _post(url, text[:MAX_CHARACTERS])
    except _TryAgainError as error:
        raise WebhookError(f"the webhook of {WEBHOOK_VARIABLE} {error} ({ATTEMPTS} attempts)") from None
    return True


def _post(url: httpx.URL, text: str) -> None:
    """Raises without a chain of causes: httpx's own errors name the address."""
    only = (url.host, url.port or (443 if url.scheme == "https" else 80))
    try:
        with (
            reading_until(time.monotonic() + TIMEOUT_SECONDS),
            httpx.Client(transport=GuardedTransport(only), timeout=TIMEOUT_SECONDS) as client,
            client.stream("POST", url, json={"text": text}) as answer,
        ):
            status = answer.status_code
    except httpx.HTTPError as error:
        raise _TryAgainError(f"could not be reached: {type(error).__name__}") from None
    if status == 429 or status >= 500:
        raise _TryAgainError(f"answered {status}")
    if not 200 <= status < 300:
        raise WebhookError(f"the webhook of {WEBHOOK_VARIABLE} answered {status}")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
