"""CloudRift's list is asked for by a POST."""

import json
from pathlib import Path

from tests.capture.site import Asked, Reply, Site
from tests.sources.helpers import page, read
from tests.sources.loopback import json_reply, visit


def test_the_list_is_asked_for_by_a_post_without_a_key(tmp_path: Path) -> None:
    def list_types(asked: Asked) -> Reply:
        wanted = json.loads(asked.body)
        selector = wanted["data"]["selector"]
        if asked.method != "POST" or "version" not in wanted or "ByServiceAndLocation" not in selector:
            return Reply(400, b'"request must be {version, data}"', {"content-type": "application/json"})
        return json_reply(page("cloudrift", "instance_types.json"))

    with Site() as site:
        site.route("api.cloudrift.ai", "/api/v1/instance-types/list", list_types)
        captured, answers = visit("cloudrift", site, tmp_path)
        (asked,) = site.pages_asked()
    assert captured.status == "captured"
    assert asked.headers["content-type"] == "application/json"
    assert not {"authorization", "x-api-key"} & asked.headers.keys()
    assert len(read("cloudrift", *answers)[0]) == 5
