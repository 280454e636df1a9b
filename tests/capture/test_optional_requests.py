"""Requests without whose answers a visit is complete, and requests made because others failed."""

import json
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.replay import capture_pages
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.capture import Capture, capture_status, request_warnings
from pipeline.contracts.listing import Request
from pipeline.contracts.request import Entry
from pipeline.home.paths import Home
from pipeline.refresh.ingest import bounded_warnings, record_day
from tests.pages_server import PagesServer

from .conftest import DAY, Capturing, module, source
from .site import Reply, Site

ACME = "prices.acme.example"
FORBIDDEN = "http_403, the host forbids the request (403)"


def at(path: str) -> str:
    return f"https://{ACME}{path}"


def asking(*requests: tuple[str, bool], **facts) -> SourceConfig:
    """A source that asks these paths; True: the answer is optional."""
    return source(requests=[{"url": at(path), "optional": opt} for path, opt in requests], **facts)


def chain(*paths: str):
    """A module's retry_requests: after the failure of each address, the next one."""

    def retry_requests(answer, config):
        place = paths.index(answer.url.removeprefix(f"https://{ACME}")) + 1
        return [Request(at(path)) for path in paths[place : place + 1]]

    return retry_requests


def outcomes(captured: Capture) -> list[tuple[str, str]]:
    return [(entry.url.removeprefix(f"https://{ACME}"), entry.outcome) for entry in captured.entries]


def test_a_visit_is_complete_without_an_optional_answer(
    capture: Capturing, site: Site, archive: Archive, tmp_path: Path
) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    site.say(ACME, "/stock", Reply(401, b"{}"))
    captured = capture(asking(("/stock", True), ("/gpus", False)))
    assert outcomes(captured) == [("/gpus", "ok"), ("/stock", "http_4xx")]
    assert (captured.status, captured.error, captured.failed_requests) == ("captured", None, 1)
    assert captured.warnings == (
        "1 of 1 optional requests failed, the first: http_4xx, the host rejects the request "
        f"({at('/stock')})",
    )
    (again,) = archive.captures("acme")
    assert again == captured
    outcome = record_day(source(), DAY, [captured], Home(tmp_path))
    assert outcome.warnings == captured.warnings


def test_without_a_mandatory_answer_a_visit_is_partial(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/stock", Reply(200, b"{}"))
    config = asking(("/gpus", False), ("/stock", True))
    captured = capture(config)
    assert (captured.status, captured.failed_requests) == ("partial", 1)
    assert captured.error == f"http_404: there is nothing at this address (404): {at('/gpus')} answered 404"
    site.say(ACME, "/stock", Reply(404))
    captured = capture(config)
    assert (captured.status, captured.failed_requests) == ("failed", 2)
    assert at("/gpus") in str(captured.error)


def test_failing_optional_requests_keep_no_other_from_being_asked(capture: Capturing, site: Site) -> None:
    """Failures in a row end a visit; the mandatory request comes before them. Refusals end none."""
    optional = [(f"/stock{number}", True) for number in range(5)]
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    expected = {
        500: ["ok"] + ["http_5xx"] * 3 + ["given_up"],
        403: ["ok"] + ["http_403"] * 5,
    }
    for status, codes in expected.items():
        for path, _ in optional:
            site.say(ACME, path, Reply(status))
        captured = capture(asking(*optional, ("/gpus", False)), retries=0)
        assert captured.status == "captured"
        assert [code for _, code in outcomes(captured)] == codes
        first = captured.entries[1].outcome
        assert captured.warnings == (
            f"5 of 5 optional requests failed, the first: {first}, {first.sentence} ({at('/stock0')})",
        )


def test_pages_of_an_optional_list_are_optional(capture: Capturing, site: Site) -> None:
    paging = {"kind": "next_link", "field": "next"}
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    site.say(ACME, "/stock", Reply(200, b'{"next": "https://%s/more"}' % ACME.encode()))
    captured = capture(asking(("/gpus", False), ("/stock", True), paging=paging))
    assert outcomes(captured)[-1] == ("/more", "http_404")
    assert captured.status == "captured"
    assert len(captured.warnings) == 1


def test_a_source_asks_for_something_that_it_needs() -> None:
    with pytest.raises(ValueError, match="at least one request must not be optional"):
        asking(("/gpus", True))


def test_a_folder_without_an_optional_answer_is_complete(tmp_path: Path, archive: Archive) -> None:
    folder = tmp_path / "pages" / "acme"
    folder.mkdir(parents=True)
    (folder / "gpus.json").write_bytes(b"{}")
    rows = [{"url": at("/gpus"), "file": "gpus.json"}, {"url": at("/stock"), "status": 401}]
    config = asking(("/gpus", False), ("/stock", True))
    for index in (rows, rows[:1]):
        (folder / "index.json").write_text(json.dumps(index))
        captured = capture_pages(folder.parent, config, day=DAY, archive=archive)
        assert captured.status == "captured"
        assert len(captured.warnings) == len(index) - 1


def test_served_pages_without_an_optional_answer_are_complete(capture: Capturing, tmp_path: Path) -> None:
    """No host failed: the folder gives the same capture as when it is imported. A page that the index has
    with an error is one, and a mandatory page that is missing is missed."""
    folder = tmp_path / "pages" / "acme"
    folder.mkdir(parents=True)
    (folder / "gpus.json").write_bytes(b"{}")
    rows = [{"url": at("/gpus"), "file": "gpus.json"}, {"url": at("/stock"), "status": 404}]
    config = asking(("/gpus", False), ("/stock", True))
    for index, count in ((rows[:1], 1), (rows, 2)):
        (folder / "index.json").write_text(json.dumps(index))
        with PagesServer(folder.parent) as server:
            captured = capture(config, base_url=server.base_url)
            assert captured.status == "captured"
            assert (len(captured.entries), len(captured.warnings)) == (count, count - 1)
            assert capture(asking(("/other", False)), base_url=server.base_url).status == "failed"


def test_a_lacking_key_is_neither_a_failure_nor_a_warning() -> None:
    ok = Entry(url=at("/gpus"), file="a")
    keyed = Entry(url=at("/more"), outcome="needs_key", status=None, optional=True)
    mandatory = keyed.model_copy(update={"optional": False})
    refused = Entry(url=at("/stock"), status=403, optional=True)
    assert capture_status([ok, keyed]) == "captured"
    assert request_warnings([ok, keyed]) == ()
    assert capture_status([mandatory, refused]) == "needs_key"


def test_an_odd_answer_is_a_warning() -> None:
    odd = [Entry(url=at(f"/{n}"), file="a", warning=f"/{n} sent text/plain") for n in range(4)]
    assert capture_status(odd) == "captured"
    assert request_warnings(odd) == (f"4 of 4 answers were odd, the first: /0 sent text/plain ({at('/0')})",)


def test_an_unexpected_content_type_is_a_warning(capture: Capturing, site: Site, archive: Archive) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}", {"content-type": "text/plain"}))
    config = source(requests=[{"url": at("/gpus"), "content_types": ["application/json"]}])
    captured = capture(config)
    assert captured.status == "captured"
    (warning,) = captured.warnings
    assert "text/plain" in warning


def test_a_refused_query_is_asked_in_another_way(
    capture: Capturing, site: Site, archive: Archive, tmp_path: Path
) -> None:
    seen = []

    def retry_requests(answer, config):
        seen.append((answer.status, answer.json()))
        return [Request(answer.url, "POST", {}, b"short")]

    def route(asked):
        return Reply(200, b"{}") if asked.body == b"short" else Reply(400, b'{"errors": ["no such field"]}')

    site.route(ACME, "/graphql", route)
    facts = {"url": at("/graphql"), "method": "POST", "json_body": {"query": "long"}}
    captured = capture(source(requests=[facts]), module(retry_requests=retry_requests))
    assert seen == [(400, {"errors": ["no such field"]})]
    assert [asked.body for asked in site.pages_asked()] == [b'{"query":"long"}', b"short"]
    assert (captured.status, captured.error) == ("captured", None)
    refused, answered = captured.entries
    assert refused.instead == (answered.key,)
    assert refused.file is not None  # the refusal is archived, but no reader gets it
    assert [answer.body for answer in archive.answers(captured)] == [b"{}"]
    assert captured.warnings == (
        "1 failed requests were made up for by others, the first: http_4xx, the host rejects the request "
        f"({at('/graphql')})",
    )
    assert archive.captures("acme") == [captured]


def test_a_refusal_that_repeats_itself_is_not_asked_again(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/gpus", Reply(400, b"{}"))
    captured = capture(source(), module(retry_requests=lambda answer, config: [Request(answer.url)]))
    assert len(site.pages_asked()) == 1
    assert captured.status == "failed"


def test_a_chain_of_addresses_is_followed_to_the_first_that_answers(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/a", Reply(403, b"<html>no</html>"))
    site.say(ACME, "/c", Reply(200, b"{}"))
    site.say(ACME, "/other", Reply(200, b"{}"))
    config = asking(("/a", False), ("/other", False))
    captured = capture(config, module(retry_requests=chain("/a", "/b", "/c", "/d")))
    assert outcomes(captured) == [("/a", "http_403"), ("/b", "http_404"), ("/c", "ok"), ("/other", "ok")]
    assert (captured.status, captured.error, captured.failed_requests) == ("captured", None, 2)
    assert captured.warnings == (
        f"2 failed requests were made up for by others, the first: {FORBIDDEN} ({at('/a')})",
    )


def test_a_chain_without_an_answer_is_a_failure(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/other", Reply(200, b"{}"))
    config = asking(("/a", False), ("/other", False))
    captured = capture(config, module(retry_requests=chain("/a", "/b")))
    assert captured.status == "partial"
    assert str(captured.error).startswith("http_404")
    assert "1 more requests failed" in str(captured.error)


def test_all_that_was_asked_instead_must_be_answered(capture: Capturing, site: Site) -> None:
    def halves(answer, config):
        return [Request(at("/half1")), Request(at("/half2"))] if answer.url == at("/all") else []

    site.say(ACME, "/half1", Reply(200, b"{}"))
    config = asking(("/all", False))
    assert capture(config, module(retry_requests=halves)).status == "partial"
    site.say(ACME, "/half2", Reply(200, b"{}"))
    assert capture(config, module(retry_requests=halves)).status == "captured"


def test_an_address_that_may_not_be_asked_leads_to_the_next(capture: Capturing, site: Site) -> None:
    site.say(
        ACME, "/robots.txt", Reply(200, b"User-agent: *\nDisallow: /a\n", {"content-type": "text/plain"})
    )
    site.say(ACME, "/b", Reply(200, b"{}"))
    config = asking(("/a", False))
    captured = capture(config, module(retry_requests=chain("/a", "/b")))
    assert outcomes(captured) == [("/a", "robots_disallowed"), ("/b", "ok")]
    assert captured.status == "captured"


def test_what_is_asked_instead_of_an_optional_request_is_optional(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    config = asking(("/gpus", False), ("/a", True))
    captured = capture(config, module(retry_requests=chain("/a", "/b")))
    assert [entry.optional for entry in captured.entries] == [False, True, True]
    assert captured.status == "captured"


@pytest.mark.parametrize("hook", ["retry_requests", "next_requests"])
def test_a_hook_that_breaks_does_not_hide_what_the_host_answered(
    capture: Capturing, site: Site, tmp_path: Path, hook: str
) -> None:
    def breaks(answer, config):
        raise ValueError("broken")

    site.say(ACME, "/gpus", Reply(403))
    site.say(ACME, "/more", Reply(200, b"{}"))
    config = asking(("/more", False), ("/gpus", False))
    captured = capture(config, module(**{hook: breaks}))
    assert captured.error == (
        f"http_403: the host forbids the request (403): {at('/gpus')} answered 403; "
        f"acme.{'paging' if hook == 'next_requests' else hook}: ValueError: broken"
    )
    assert captured.code == "http_403"
    outcome = record_day(source(), DAY, [captured], Home(tmp_path))
    assert (outcome.result, outcome.code) == ("refused_by_host", "http_403")


def test_a_busy_host_is_not_asked_in_another_way(capture: Capturing, site: Site) -> None:
    for status, host, asked in (
        (403, ACME, True),
        (429, ACME, False),
        (503, ACME, False),
        (429, "other.acme.example", True),
        (503, "other.acme.example", True),
    ):
        site.say(ACME, "/a", Reply(status))
        other = Request(f"https://{host}/b")
        instead = {at("/a"): [other]}
        captured = capture(
            asking(("/a", False), hosts=["other.acme.example"]),
            module(retry_requests=lambda answer, config, instead=instead: instead.get(answer.url, [])),
            retries=0,
        )
        assert [entry.url for entry in captured.entries] == [at("/a"), *([other.url] if asked else [])]
    assert [each.host for each in site.pages_asked() if each.target == "/b"] == [
        ACME,
        "other.acme.example",
        "other.acme.example",
    ]


def test_host_that_limits_requests_is_not_asked_again_in_the_run(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/a", Reply(429))
    site.say("other.acme.example", "/c", Reply(200, b"{}"))
    requests = [{"url": at("/a")}, {"url": at("/b")}, {"url": "https://other.acme.example/c"}]
    captured = capture(source(requests=requests), retries=0)
    assert [entry.outcome for entry in captured.entries] == ["http_429", "given_up", "ok"]
    assert [each.target for each in site.pages_asked(ACME)] == ["/a"]
    assert not captured.entries[1].sent


def test_answer_that_redact_empties_is_empty(capture: Capturing, site: Site, tmp_path: Path) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    captured = capture(source(), module(redact=lambda body: b""))
    assert (captured.status, captured.code) == ("failed", "empty_body")
    assert captured.error == f"empty_body: the answer is empty: redact leaves nothing of {at('/gpus')}"
    assert record_day(source(), DAY, [captured], Home(tmp_path)).result == "changed"


def test_kept_warnings_and_errors_are_bounded(capture: Capturing, site: Site, tmp_path: Path) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}"))

    def next_requests(answer, config):
        return [Request(at(f"/{'x' * 60_000}{n}"), optional=True) for n in range(2)]

    def retry_requests(answer, config):
        return [Request(f"https://elsewhere.example/{'y' * 60_000}")] if "/y" not in answer.url else []

    captured = capture(source(), module(next_requests=next_requests, retry_requests=retry_requests))
    assert all(len(entry.error or "") <= 1000 for entry in captured.entries)
    outcome = record_day(source(), DAY, [captured], Home(tmp_path))
    assert all(len(text) <= 300 for text in outcome.warnings)
    (warning,) = [text for text in outcome.warnings if "optional requests failed" in text]
    assert "http_404, there is nothing at this address (404)" in warning


def test_many_and_long_warnings_are_cut() -> None:
    assert bounded_warnings(["a\x1b"] * 20) == ("a\N{REPLACEMENT CHARACTER}",) * 20
    assert bounded_warnings(["b"] * 25)[19:] == ("b", "and 5 more warnings")
    assert bounded_warnings(["c" * 301]) == ("c" * 299 + "…",)
