"""Hosts in one spelling, and which addresses have the same origin."""

from pipeline.contracts.hosts import declared_host, host_of, host_with_port, same_origin

HOSTS = {
    "https://acme.example/gpus": "acme.example",
    "https://WWW.Acme.Example:443/gpus": "acme.example",
    "https://acme.example:8443": "acme.example:8443",
    "https://www.acme.example:8443": "acme.example:8443",
    "http://acme.example:80/": "acme.example",
    "http://acme.example:443/": "acme.example:443",
    "https://acme.example:80/": "acme.example:80",
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
    "a-b.9.example": "a-b.9.example",
    "x": "x",
    LONGEST: LONGEST,
    f"{LONGEST}:65535": f"{LONGEST}:65535",
}
NO_HOSTS = """https://acme.example acme.example/gpus acme.example: acme.example:0 acme.example:65536 :443
acme.example:https *.acme.example acme..example .acme.example -acme.example acme-.example user@acme.example
acme.example. [::1] äcme.example""".split()  # noqa: SIM905
ORIGIN = "https://acme.example/gpus"
OTHER_ORIGINS = """https://www.acme.example/2 https://acme.example:8443/2 http://acme.example/2
http://acme.example:443/2 https://[::1/""".split()  # noqa: SIM905


def refused(text: str) -> str | None:
    """Return why a text declares no host."""
    try:
        return declared_host(text) and None
    except ValueError as error:
        return str(error)


def test_the_host_of_an_address() -> None:
    assert {url: host_of(url) for url in HOSTS} == HOSTS
    assert (host_with_port("A.example", 443), host_with_port("a.example", 80)) == (
        "a.example",
        "a.example:80",
    )


def test_a_declared_host() -> None:
    assert {text: declared_host(text) for text in DECLARED} == DECLARED
    wrong = ["", "acme example", f"c{LONGEST}", *NO_HOSTS]
    said = {text: refused(text) for text in wrong}
    rule = "is not a host: write its name, or name:port, without https:// and path"
    assert said == {text: f"{text!r} {rule}" for text in wrong}


def test_a_key_may_go_to_the_same_origin_only() -> None:
    assert same_origin("https://ACME.example:443/2", ORIGIN)
    assert [url for url in OTHER_ORIGINS if same_origin(url, ORIGIN)] == []
    assert not same_origin("https://[::1/", "https://[::1/")
