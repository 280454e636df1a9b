"""Fetches the config.json of a model from the Hugging Face hub, with one bounded request."""

import os
import re
import time
from collections.abc import Mapping
from typing import Any

from pipeline.capture.http.client import Client, Rules
from pipeline.capture.http.secrets import Secrets
from pipeline.contracts.listing import Request
from pipeline.contracts.outcome import OutcomeCode
from pipeline.model.architectures import ConfigError
from pipeline.model.given_models import MAX_BYTES, parse_config

HOST = "huggingface.co"
SECONDS = 60.0
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


def is_hub_id(text: str) -> bool:
    """True if a string has the form organisation/name."""
    return bool(_ID.fullmatch(text)) and ".." not in text


def fetch_config(hub_id: str, client: Client, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Ask the hub for a model's config.json. Raises ConfigError."""
    if not is_hub_id(hub_id):
        raise ConfigError(f"{hub_id!r} is not like organisation/name")
    url = f"https://{HOST}/{hub_id}/resolve/main/config.json"
    rules = Rules(
        source="hub",
        allowed_hosts=frozenset({HOST}),
        secrets=Secrets(environment, ()),
        deadline=time.monotonic() + SECONDS,
        body_bytes=MAX_BYTES,
    )
    response = client.fetch(Request(url=url), rules)
    if response.code is not OutcomeCode.OK or response.body is None:
        raise ConfigError(
            f"{url}: {response.error}; if it needs a login, download its config.json and add that file"
        )
    return parse_config(response.body, url)
