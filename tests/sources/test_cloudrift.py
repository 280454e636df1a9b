"""CloudRift: a POST, cents, memory of one GPU, and types without a machine at present."""

import json
from pathlib import Path
from typing import Any

from tests.capture.site import Asked, Reply, Site
from tests.sources.helpers import answer, page, read
from tests.sources.loopback import json_reply, visit


def types(**variant: Any) -> dict[str, Any]:
    body = json.loads(page("cloudrift", "instance_types.json"))
    kind = body["data"]["instance_types"][0]
    body["data"]["instance_types"] = [kind | {"variants": [kind["variants"][1] | variant]}]
    return body


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


def test_places_and_free_machines() -> None:
    free = {"usny01_a01": 2}
    nowhere: dict[str, Any] = {"nodes_per_dc": {}, "available_nodes_per_dc": {}, "available_nodes": 0}
    unsaid: dict[str, Any] = {"nodes_per_dc": None, "available_nodes_per_dc": None}
    for variant, places in (
        ({"available_nodes_per_dc": free}, [("usny01_a01", True)]),
        ({"available_nodes_per_dc": None}, [("usny01_a01", None)]),
        (nowhere, [(None, False)]),
        *((unsaid | {"available_nodes": count}, []) for count in (None, "", "some")),
    ):
        listings, rejects = read("cloudrift", answer(types(**variant)))
        assert [(row.region, row.available) for row in listings] == places
        assert [reject.reason for reject in rejects] == ([] if places else ["not_offered"])


def test_a_machine_without_gpus_is_not_ours() -> None:
    body = types(gpu_count=0)
    body["data"]["instance_types"] += types()["data"]["instance_types"]
    listings, rejects = read("cloudrift", answer(body))
    assert (len(listings), rejects) == (1, [])
