"""Hosts in one spelling, and which addresses have the same origin."""

import re

import pytest

from pipeline.contracts.hosts import declared_host, host_of, host_with_port, same_origin

HOSTS = {
    "https://acme.example/gpus": "acme.example",
    "https://WWW.Acme.Example:443/gpus": "acme.example",
    "https://www.acme.example:8443": "acme.example:8443",
    "http://acme.example:80/": "acme.example",
    "http://acme.example:443/": "acme.example:443",
    "https://wwwacme.example/": "wwwacme.example",
    "https://www.example/": "www.example",
    "https://acme.example:http/": "",
    "https://acme.example:99999/": "",
    "https://[::1/": "",
    "gpus": "",
}
LONGEST = ".".join(["a" * 62] * 4) + ".b"  # 253 characters
DECLARED = {
    " Acme.example ": "acme.example",
    "www.acme.example": "acme.example",
    "acme.example:443": "acme.example",
    "www.acme.example:8443": "acme.example:8443",
    **{host: host for host in ("a-b.9.example", "x", LONGEST, f"{LONGEST}:65535")},
}
NO_HOSTS = """https://acme.example acme.example/gpus acme.example: acme.example:0 acme.example:65536 :443
acme.example:https *.acme.example acme..example .acme.example -acme.example acme-.example user@acme.example
acme.example. [::1] äcme.example""".split()  # noqa: SIM905


def test_the_host_of_an_address() -> None:
    assert {url: host_of(url) for url in HOSTS} == HOSTS
    hosts = [host_with_port("A.example", port) for port in (443, 80)]
    assert hosts == ["a.example", "a.example:80"]


def test_a_declared_host() -> None:
    assert {text: declared_host(text) for text in DECLARED} == DECLARED
    for text in ("", "acme example", f"c{LONGEST}", *NO_HOSTS):
        said = f"{text!r} is not a host: write its name, or name:port, without https:// and path"
        with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
            declared_host(text)


def test_a_key_may_go_to_the_same_origin_only() -> None:
    assert same_origin("https://ACME.example:443/2", "https://acme.example/gpus")
    assert not same_origin("http://acme.example:443/2", "https://acme.example/gpus")
    assert not same_origin("https://[::1/", "https://[::1/")
