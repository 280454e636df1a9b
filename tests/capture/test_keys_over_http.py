"""Keys go to a replay server only over a connection that cannot be read on the way."""

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.visit import capture_all
from pipeline.contracts.capture import Capture

from .conftest import DAY, FAST, module, source
from .site import Reply, Site

ACME = "prices.acme.example"
ASK = {
    "url": f"https://{ACME}/gpus?key=${{ACME_KEY}}",
    "method": "POST",
    "headers": {"authorization": "Bearer ${ACME_KEY}"},
    "json_body": {"key": "${ACME_KEY}"},
}


def replayed(site: Site, archive: Archive, host: str, key: str = "k3y of acme") -> tuple[Capture, list[str]]:
    """Capture from the site under another name of this machine; also what was said meanwhile."""
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    site.asked.clear()
    said: list[str] = []
    with Client(limits=Limits(**FAST), replay=ReplayServer(f"http://{host}:{site.port}")) as client:
        captures = capture_all(
            [source(requests=[ASK], key_variables=["ACME_KEY"])],
            environment={"ACME_KEY": key},
            day=DAY,
            archive=archive,
            client=client,
            progress=said.append,
            module_of=lambda name: module(),
        )
    return captures["acme"], [line for line in said if "plain http" in line]


def sent(site: Site) -> str:
    """All that arrived at the site."""
    return "".join(f"{asked.target} {asked.headers} {asked.body!r}" for asked in site.asked)


def test_another_machine_gets_no_key_over_plain_http(site: Site, archive: Archive) -> None:
    """The address 0.0.0.0 leads to this machine, and is not a loopback address."""
    captured, (warning,) = replayed(site, archive, "0.0.0.0")
    assert captured.status == "captured"
    assert len(site.pages_asked()) == 1
    assert "k3y" not in sent(site)
    assert "Bearer ${ACME_KEY}" in sent(site)
    assert captured.entries[0].url == f"https://{ACME}/gpus?key=${{ACME_KEY}}"
    assert warning.startswith(
        f"http://0.0.0.0:{site.port} is plain http on another machine: keys are not sent"
    )
    assert "(ACME_KEY)" in warning
    # Without its key a source is not asked with a placeholder.
    assert replayed(site, archive, "0.0.0.0", key=" ")[0].status == "needs_key"
    assert site.pages_asked() == []


def test_this_machine_gets_them(site: Site, archive: Archive) -> None:
    for host in ("127.0.0.1", "localhost"):
        captured, warnings = replayed(site, archive, host)
        assert captured.status == "captured"
        assert "Bearer k3y of acme" in sent(site)
        assert warnings == []


def test_which_servers_may_have_keys() -> None:
    expected = {
        "https://replay.example": True,
        "http://127.0.0.1:8000": True,
        "http://127.9.9.9": True,
        "http://[::1]:8000": True,
        "http://localhost:8000": True,
        "http://replay.example": False,
        "http://10.0.0.5:8000": False,
        "http://192.168.1.2": False,
        "http://localhost.example": False,
        "http://[fe80::1]:80": False,
    }
    assert {url: ReplayServer(url).may_have_keys for url in expected} == expected
