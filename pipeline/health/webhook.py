"""Posts the morning's digest once a day to a chat's incoming webhook.

The webhook's URL is a secret: no error message or log shows it.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress

import httpx

from pipeline.capture.http.network import trusted_certificates
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.health.digest import Digest
from pipeline.home.disk import UnwritableError, replacing
from pipeline.home.paths import Home
from pipeline.record.incidents import report_incident

WEBHOOK_VARIABLE = "GPUFARE_WEBHOOK_URL"
TIMEOUT_SECONDS = 10.0
MAX_CHARACTERS = 4_000
"""Chat services truncate or reject longer messages."""

# These loggers log full URLs.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.ERROR)


def send_digest(home: Home, digest: Digest, environment: Mapping[str, str]) -> str:
    """Post a morning's digest unless it has already been posted, and return a line on the outcome.

    Never raises because of the webhook or the disk: a failure is recorded as an incident. If the home cannot
    be written to, the digest is posted each time, since that is when the digest is most needed.
    """
    posted = home.digests / f"{digest.day}.txt"
    if posted.exists():
        return f"the digest of {digest.day} was already posted"
    address = environment.get(WEBHOOK_VARIABLE, "").strip()
    if not address:
        return f"no webhook is set in {WEBHOOK_VARIABLE}"
    if problem := _post(address, digest.text()[:MAX_CHARACTERS]):
        remedy = f"check {WEBHOOK_VARIABLE}, then run `gpufare digest`"
        report_incident(
            home,
            Incident(kind=IncidentKind.DIGEST_NOT_SENT, day=digest.day, reason=problem, remedy=remedy),
        )
        return f"the digest was not posted: {problem}"
    with suppress(OSError, UnwritableError), replacing(posted) as temporary:
        temporary.write_text(digest.text() + "\n", encoding="utf-8")
    return f"the digest of {digest.day} was posted"


def _post(address: str, text: str) -> str | None:
    """Post ``{"text": text}`` without reading the response body; return why posting failed, or None."""
    try:
        url = httpx.URL(address)
        if url.scheme != "https" and (url.scheme != "http" or url.host not in ("127.0.0.1", "localhost")):
            return f"{WEBHOOK_VARIABLE} must begin with https://"
        with (
            httpx.Client(verify=trusted_certificates(), trust_env=False, timeout=TIMEOUT_SECONDS) as client,
            client.stream("POST", url, json={"text": text}) as answer,
        ):
            return None if answer.is_success else f"the webhook answered {answer.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return f"the webhook could not be reached: {type(error).__name__}"
