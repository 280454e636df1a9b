"""Keys go to a replay server only where nobody on the way can read them."""

import json

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.visit import capture_all
from pipeline.contracts.capture import Capture
from pipeline.contracts.listing import Request

from .conftest import DAY, FAST, module, source
from .site import Reply, Site

ACME = "prices.acme.example"
ENVIRONMENT = {"ACME_KEY": "k3y of acme", "ACME_API_TOKEN": "t0ken of acme", "ACME_REGION": "eu-west-1"}
ASK = {
    "url": f"https://{ACME}/gpus?key=${{ACME_KEY}}",
    "method": "POST",
    "headers": {"authorization": "Bearer ${ACME_KEY}"},
    "json_body": {"key": "${ACME_KEY}"},
}


def own_requests(config, environment):
    """A module that puts the values of variables into its requests itself."""
    body = json.dumps({"key": environment["ACME_KEY"], "region": environment["ACME_REGION"]}).encode()
    headers = {"x-token": environment["ACME_API_TOKEN"], "authorization": "Bearer ${ACME_KEY}"}
    return [Request(f"https://{ACME}/gpus?key={environment['ACME_KEY']}", "POST", headers, body)]


def replayed(
    site: Site, archive: Archive, host: str, *, own: bool = False, environment: dict[str, str] | None = None
) -> tuple[Capture, list[str]]:
    """Capture from the site under another name of this machine; also what was said meanwhile."""
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    said: list[str] = []
    config = source(requests=[ASK], key_variables=["ACME_KEY"])
    with Client(limits=Limits(**FAST), replay=ReplayServer(f"http://{host}:{site.port}")) as client:
        captures = capture_all(
            [config],
            environment=ENVIRONMENT if environment is None else environment,
            day=DAY,
            archive=archive,
            client=client,
            progress=said.append,
            module_of=lambda name: module(requests=own_requests) if own else module(),
        )
    return captures["acme"], said


def sent(site: Site) -> str:
    """All that arrived at the site."""
    return "".join(f"{asked.target} {asked.headers} {asked.body!r}" for asked in site.asked)


@pytest.mark.parametrize("own", [False, True], ids=["yaml", "module"])
def test_another_machine_gets_no_key_over_plain_http(site: Site, archive: Archive, own: bool) -> None:
    """The address 0.0.0.0 leads to this machine, and is not a loopback address."""
    captured, said = replayed(site, archive, "0.0.0.0", own=own)
    assert captured.status == "captured"
    assert len(site.pages_asked()) == 1
    for value in ("k3y", "t0ken"):
        assert value not in sent(site)
    assert "Bearer ${ACME_KEY}" in sent(site)
    assert ("eu-west-1" in sent(site)) == own
    assert captured.entries[0].url == f"https://{ACME}/gpus?key=${{ACME_KEY}}"
    (warning,) = [line for line in said if "plain http" in line]
    assert warning.startswith(
        f"http://0.0.0.0:{site.port} is plain http on another machine: keys are not sent"
    )
    assert "(ACME_KEY)" in warning


@pytest.mark.parametrize("own", [False, True], ids=["yaml", "module"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_gets_them(site: Site, archive: Archive, host: str, own: bool) -> None:
    captured, said = replayed(site, archive, host, own=own)
    assert captured.status == "captured"
    assert "Bearer k3y of acme" in sent(site)
    assert not [line for line in said if "plain http" in line]


def test_a_source_without_its_key_is_not_asked_with_a_placeholder(site: Site, archive: Archive) -> None:
    captured, _ = replayed(site, archive, "0.0.0.0", environment={"ACME_KEY": " "})
    assert captured.status == "needs_key"
    assert site.pages_asked() == []


@pytest.mark.parametrize(
    ("base_url", "may"),
    [
        ("https://replay.example", True),
        ("http://127.0.0.1:8000", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:8000", True),
        ("http://localhost:8000", True),
        ("http://replay.example", False),
        ("http://10.0.0.5:8000", False),
        ("http://192.168.1.2", False),
        ("http://localhost.example", False),
        ("http://[fe80::1]:80", False),
    ],
)
def test_which_servers_may_have_keys(base_url: str, may: bool) -> None:
    assert ReplayServer(base_url).may_have_keys is may
