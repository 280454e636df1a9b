"""The config.json of a model from the Hugging Face hub: one bounded request."""

import json
import os
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline.capture.http.secrets import Secrets
from pipeline.contracts.listing import Request
from pipeline.contracts.outcome import OutcomeCode
from pipeline.model.architectures import ConfigError

if TYPE_CHECKING:
    from pipeline.capture.http.client import Client

HOST = "huggingface.co"
MAX_BYTES = 1 << 20
"""Of a config.json; the longest published are some 100 kB."""
SECONDS = 60.0
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


def is_hub_id(text: str) -> bool:
    """True if a text is like organisation/name."""
    return bool(_ID.fullmatch(text)) and ".." not in text


def fetch_config(
    hub_id: str, client: "Client", environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Ask the hub for a model's config.json. Raises ConfigError."""
    from pipeline.capture.http.client import Rules  # a config.json on this machine needs no client

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
            f"{url}: {response.error}; where it needs a login, download its config.json and add that file"
        )
    return parse_config(response.body, url)


def parse_config(body: bytes, name: str) -> dict[str, Any]:
    """A config.json's fields. Raises ConfigError where it is no JSON object of at most MAX_BYTES."""
    if len(body) > MAX_BYTES:
        raise ConfigError(f"{name} is larger than {MAX_BYTES} bytes, so it is not a config.json")
    try:
        config = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise ConfigError(f"{name} is not a JSON object")
    return config
