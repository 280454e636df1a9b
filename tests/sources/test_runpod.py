import json
import re
from collections import Counter
from dataclasses import replace

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.refresh.ingest import read_answers
from pipeline.sources.runpod import next_requests, retry_requests
from tests.sources.helpers import answer, read


def gpu(**fields):
    return {"id": "NVIDIA H100 80GB HBM3", "displayName": "H100 SXM", "memoryInGb": 80, **fields}


def envelope(*gpus):
    return answer({"data": {"gpuTypes": list(gpus)}})


def prices(listings):
    return [(row.tier, row.price_kind, row.term_days, str(row.native_price)) for row in listings]


def test_the_short_answer_without_tier_flags():
    """Prices of 2026-09-29: a tier without an offer has a price of 0 or of half a dollar."""
    types = [
        ("NVIDIA H100 80GB HBM3", 80, 3.49, 2.69),
        ("AMD Instinct MI300X OAM", 192, 2.39, 0.5),
        ("NVIDIA GeForce RTX 3090", 24, 0.5, 0.22),
        ("NVIDIA RTX A2000", 6, 0.5, 0.12),
        ("Tesla V100-SXM2-16GB", 16, 0, 0.23),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 96, 2.09, 1.69),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 2g.48gb", 48, 1.09, 1),
        ("unknown", 0, 0, 0),
    ]
    listings, rejects = read(
        "runpod",
        envelope(
            *(
                {
                    "id": name,
                    "displayName": name,
                    "memoryInGb": gb,
                    "securePrice": secure,
                    "communityPrice": other,
                }
                for name, gb, secure, other in types
            )
        ),
    )
    assert {(row.raw_label, row.tier): str(row.native_price) for row in listings} == {
        ("NVIDIA H100 80GB HBM3", "secure"): "3.49",
        ("NVIDIA H100 80GB HBM3", "community"): "2.69",
        ("AMD Instinct MI300X OAM", "secure"): "2.39",
        ("NVIDIA GeForce RTX 3090", "community"): "0.22",
        ("NVIDIA RTX A2000", "community"): "0.12",
        ("Tesla V100-SXM2-16GB", "community"): "0.23",
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "secure"): "2.09",
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "community"): "1.69",
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 2g.48gb", "secure"): "1.09",
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 2g.48gb", "community"): "1",
    }
    assert Counter(r.reason for r in rejects) == {
        "placeholder_suspected": 3,
        "not_offered": 1,
        "not_a_gpu": 1,
    }
    assert listings[4].context["vram_gb"] == 6
    assert {row.native_unit for row in listings if " MIG " not in row.raw_label} == {"gpu_hour"}


def test_the_flag_decides_and_not_the_price():
    offered, none = read("runpod", envelope(gpu(secureCloud=True, securePrice=0.5)))
    assert prices(offered) == [("secure", "on_demand", None, "0.5")]
    assert none == []
    none, refused = read(
        "runpod", envelope(gpu(communityCloud=False, communityPrice=2.5, communitySpotPrice=0.5))
    )
    assert none == []
    assert [r.reason for r in refused] == ["not_offered", "not_offered"]


def test_without_the_flag_half_a_dollar_is_a_placeholder_in_every_tier():
    none, refused = read(
        "runpod", envelope(gpu(securePrice=0.5, communitySpotPrice="0.50", oneMonthPrice=0.5))
    )
    assert none == []
    assert {r.reason for r in refused} == {"placeholder_suspected"}


def test_every_kind_of_price():
    listings, rejects = read(
        "runpod",
        envelope(
            gpu(
                secureCloud=True,
                communityCloud=True,
                maxGpuCount=8,
                securePrice=3.29,
                communityPrice="2.69",
                secureSpotPrice=1,
                communitySpotPrice=None,
                oneWeekPrice=3.2,
                oneMonthPrice=3.1,
                threeMonthPrice=3,
                sixMonthPrice=2.86,
                clusterPrice=3.69,
                lowestPrice={"stockStatus": "Low"},
                community={"stockStatus": "high"},
                somethingNew=[1],
            )
        ),
    )
    assert prices(listings) == [
        ("secure", "on_demand", None, "3.29"),
        ("community", "on_demand", None, "2.69"),
        ("secure", "spot", None, "1"),
        ("secure", "reserved", 7, "3.2"),
        ("secure", "reserved", 30, "3.1"),
        ("secure", "reserved", 90, "3"),
        ("secure", "reserved", 180, "2.86"),
        ("cluster", "on_demand", None, "3.69"),
    ]
    assert listings[-1].gpu_count == listings[-1].min_gpu_count == 16
    assert [row.available for row in listings] == [True, True] + [None] * 6
    assert [r.reason for r in rejects] == ["not_offered"]


def test_a_cluster_of_unknown_size_is_refused():
    none, refused = read("runpod", envelope(gpu(secureCloud=True, clusterPrice=3.69)))
    assert none == []
    assert refused[0].reason == "unknown_gpu_count"


def test_a_slice_counts_as_its_share_of_the_card():
    card = {"id": "NVIDIA X", "memoryInGb": 96, "securePrice": 2, "secureCloud": True}
    part = card | {"id": "NVIDIA X MIG 2g.48gb", "memoryInGb": 48, "securePrice": 1.09}
    listings, _ = read("runpod", envelope(card, part))
    assert [(row.gpu_count, row.native_unit) for row in listings] == [(1, "gpu_hour"), (0.5, "instance_hour")]
    none, refused = read("runpod", envelope(part))
    assert none == []
    assert refused[0].reason == "unknown_gpu_share"


@pytest.mark.parametrize("price", [True, "3.49 per hour", [3], {"usd": 3}, "NaN"])
def test_texts_that_are_not_a_price_are_refused(price):
    none, refused = read("runpod", envelope(gpu(secureCloud=True, securePrice=price)))
    assert none == []
    assert refused[0].reason == "unreadable_price"


@pytest.mark.parametrize(
    "body",
    [[gpu(securePrice=3.49)], {"gpuTypes": [gpu(securePrice=3.49)]}],
    ids=["bare list", "without data"],
)
def test_the_list_without_its_envelope(body):
    listings, _ = read("runpod", answer(body))
    assert prices(listings) == [("secure", "on_demand", None, "3.49")]


@pytest.mark.parametrize(
    "body",
    [
        '{"data": {"gpuTypes": [{"id": "NVIDIA H1',
        {"data": {"gpuTypes": []}},
        {"data": {"gpuTypes": None}},
        {"data": {"gpus": []}},
        {"data": {"gpuTypes": [{"displayName": "H100", "securePrice": 3}]}},
        {"data": {"gpuTypes": [{"id": "NVIDIA H100", "price": 3}]}},
    ],
)
def test_another_shape_is_a_clear_failure(body):
    with pytest.raises(SourceChangedError):
        read("runpod", answer(body))


def test_a_refused_query_is_asked_again_shorter():
    config = source_config("runpod")
    refused = answer({"errors": [{"message": 'Cannot query field "clusterPrice"'}]})
    (again,) = next_requests(refused, config)
    assert "clusterPrice" not in json.loads(again.body)["query"]
    assert next_requests(envelope(gpu(securePrice=3.49)), config) == []
    listings, _ = read("runpod", refused, envelope(gpu(securePrice=3.49)))
    assert len(listings) == 1


def refusal(*messages: str, query: str | None = None) -> Answer:
    """An answer that refuses a query: the full one, unless another is given."""
    asked = {"query": query or source_config("runpod").requests[0].json_body["query"]}
    errors = {"errors": [{"message": text} for text in messages]}
    return replace(answer(errors), status=400, request_body=json.dumps(asked).encode())


def asked_instead(refused: Answer) -> str | None:
    following = retry_requests(refused, source_config("runpod"))
    return json.loads(following[0].body or b"")["query"] if following else None


@pytest.mark.parametrize(
    ("unknown", "lost"),
    [
        (["clusterPrice"], {"clusterPrice"}),
        (["secureCloud", "minPodGpuCount"], {"minPodGpuCount"}),  # also the name of an argument
        (["stockStatus"], {"stockStatus"}),
        (
            ["lowestPrice"],
            {"lowestPrice", "community", "input", "gpuCount", "1", "true", "false", "stockStatus"}
            | {"minimumBidPrice", "uninterruptablePrice"},
        ),
    ],
)
def test_a_query_is_asked_again_without_the_fields_that_it_was_refused_for(unknown, lost):
    full = source_config("runpod").requests[0].json_body["query"]
    shorter = asked_instead(refusal(*(f'Cannot query field "{name}" on type "GpuType".' for name in unknown)))
    assert shorter is not None
    assert set(re.findall(r"\w+", full)) - set(re.findall(r"\w+", shorter)) == lost
    assert not any(re.search(rf"\b{name}\b(?!:)", shorter) for name in unknown)
    assert shorter.count("{") == shorter.count("}")
    assert shorter.count("(") == shorter.count(")")


def test_a_query_refused_for_another_reason_is_the_shortest():
    shortest = source_config("runpod").settings["minimal_query"]
    assert asked_instead(refusal("Something went wrong.")) == shortest
    assert asked_instead(refusal('Cannot query field "securePrice" on type "GpuType".')) == shortest
    assert (
        asked_instead(refusal('Field "secureCloud" is not defined by type "GpuLowestPriceInput".'))
        == shortest
    )
    assert asked_instead(refusal("Something went wrong.", query=shortest)) is None


def test_prices_beside_errors_are_not_asked_for_again():
    mixed = answer({"data": {"gpuTypes": [gpu(securePrice=3.49)]}, "errors": [{"message": "stock: timeout"}]})
    assert next_requests(mixed, source_config("runpod")) == []


def test_a_query_refused_with_status_400_is_asked_again_shorter():
    config = source_config("runpod")
    refused = replace(answer({"errors": [{"message": "Cannot query field"}]}), status=400)
    (again,) = retry_requests(refused, config)
    assert json.loads(again.body)["query"] == config.settings["minimal_query"]
    for other in ("<html>", "[]", '{"message": "Forbidden"}', ""):
        assert retry_requests(replace(answer(other), status=403), config) == []


def test_a_plan_at_the_on_demand_price_is_not_a_discount():
    """Seen on 2026-09-27. It casts no doubt on the on-demand price, which stays in the rankings."""
    fields = {"secureCloud": True, "communityCloud": True, "securePrice": 2.99, "communityPrice": 2.39}
    plans = {"oneMonthPrice": "2.990", "threeMonthPrice": 2.98, "sixMonthPrice": 2.39}
    built = read_answers([envelope(gpu(**fields, **plans))], source_config("runpod"))
    assert [(offer.price_kind, offer.term_days, offer.flag_reason) for offer in built.offers] == [
        ("on_demand", None, None),
        ("on_demand", None, None),
        ("reserved", 30, "reserved_at_on_demand_price"),
        ("reserved", 90, None),
        ("reserved", 180, None),
    ]


def test_a_gpu_type_without_id_does_not_take_the_others_along():
    named = {"id": "NVIDIA L4", "memoryInGb": 24, "securePrice": 0.44}
    listings, rejects = read("runpod", answer([{"securePrice": 1}, named]))
    assert [row.raw_label for row in listings] == ["NVIDIA L4"]
    assert [reject.reason for reject in rejects] == ["missing_field"]


def test_a_gpu_type_without_any_price_field_is_a_reject():
    listings, rejects = read("runpod", envelope(gpu(secureCloud=True, price=3), gpu(securePrice=3.49)))
    assert prices(listings) == [("secure", "on_demand", None, "3.49")]
    assert [reject.reason for reject in rejects] == ["missing_field"]


@pytest.mark.parametrize(
    ("fields", "secure", "community"),
    [
        ({"maxGpuCountSecureCloud": 8, "maxGpuCountCommunityCloud": 4}, range(1, 9), range(1, 5)),
        ({"maxGpuCountSecureCloud": 8, "minPodGpuCount": 2}, range(2, 9), None),
        ({"maxGpuCountSecureCloud": 0, "maxGpuCountCommunityCloud": None}, None, None),
        ({"maxGpuCount": 8}, None, None),
        ({"maxGpuCount": 8, "maxGpuCountSecureCloud": 4}, range(1, 5), None),
    ],
)
def test_each_tier_has_its_own_pod_sizes(fields, secure, community):
    flags = {"secureCloud": True, "communityCloud": True, "securePrice": 3.5, "communityPrice": 2.5}
    listings, rejects = read("runpod", envelope(gpu(**flags, **fields)))
    assert rejects == []
    assert {row.tier: row.gpu_counts for row in listings} == {
        "secure": tuple(secure) if secure else None,
        "community": tuple(community) if community else None,
    }


def test_the_largest_pod_of_both_tiers_is_that_of_the_only_tier():
    fields = {"secureCloud": False, "communityCloud": True, "communityPrice": 0.13, "maxGpuCount": 4}
    ((listing,), _) = read("runpod", envelope(gpu(**fields)))
    assert listing.gpu_counts == (1, 2, 3, 4)


@pytest.mark.parametrize("count", ["many", 2.5, -1])
def test_an_unreadable_number_of_gpus_is_a_reject(count):
    fields = {"secureCloud": True, "securePrice": 3.5, "maxGpuCountSecureCloud": count}
    none, rejects = read("runpod", envelope(gpu(**fields)))
    assert none == []
    assert [reject.reason for reject in rejects] == ["unknown_gpu_count"]


def test_a_cluster_and_a_slice_are_sold_whole():
    cluster = gpu(secureCloud=True, clusterPrice=3, maxGpuCount=8, maxGpuCountSecureCloud=8)
    part = {**gpu(secureCloud=True, securePrice=1, maxGpuCountSecureCloud=8), "memoryInGb": 20}
    part["id"] += " MIG 1g.20gb"
    listings, _ = read("runpod", envelope(cluster, part))
    assert [(row.gpu_count, row.gpu_counts) for row in listings] == [(16, None), (0.25, None)]
