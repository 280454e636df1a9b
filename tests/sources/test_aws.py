import csv
import io
import tracemalloc
from datetime import date
from decimal import Decimal
from urllib.parse import unquote

import pytest

from pipeline.catalog.places import place_of
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.sources.aws import read as read_aws
from pipeline.sources.aws import requests, retry_requests
from tests.sources.helpers import answer, page, read

VIRGINIA = "US East (N. Virginia)"


def row(**fields):
    return {"Instance Type": "p5.48xlarge", "price": "55.04", "Operating System": "Linux", **fields}


def on_demand(*rows, region=VIRGINIA):
    return answer({"regions": {region: {str(at): r for at, r in enumerate(rows)}}})


def short(listings):
    return [(r.raw_label, r.price_kind, r.region, str(r.native_price.normalize())) for r in listings]


def test_on_demand_in_us_east_1():
    listings, rejects = read("aws", answer(page("aws", "on_demand_us-east-1.json")))
    assert rejects == []
    assert {r.instance_type: str(r.native_price) for r in listings} == {
        "g6e.48xlarge": "30.1311800000",
        "p4de.24xlarge": "27.4470500000",
        "p5.48xlarge": "55.0400000000",
        "g6e.12xlarge": "10.4926400000",
        "p5en.48xlarge": "63.2960000000",
        "p6-b300.48xlarge": "142.4160000000",
        "p4d.24xlarge": "21.9576420000",
        "g6e.xlarge": "1.8610000000",
        "p5.4xlarge": "6.8800000000",
        "p6-b200.48xlarge": "113.9328000000",
    }
    assert {(r.region, r.label_kind, r.native_unit, r.gpu_count) for r in listings} == {
        ("us-east-1", "instance_type", "instance_hour", None)
    }


def test_machines_of_other_kinds_are_skipped():
    types = (
        "c7i.large",
        "trn1.32xlarge",
        "inf2.xlarge",
        "f2.48xlarge",
        "dl1.24xlarge",
        "vt1.3xlarge",
        "m5.metal",
    )
    listings, rejects = read("aws", on_demand(row(), *(row(**{"Instance Type": t}) for t in types)))
    assert len(listings) == 1
    assert rejects == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"Operating System": "Windows"}, "not_linux"),
        ({"Operating System": "RHEL"}, "not_linux"),
        ({"Pre Installed S/W": "SQL Std"}, "software_included"),
        ({"price": "0.0000000000"}, "zero_price"),
        ({"price": "N/A"}, "not_offered"),
        ({"price": None}, "not_offered"),
        ({"price": "55,04 USD"}, "unreadable_price"),
        ({"price": "-1"}, "zero_price"),
    ],
)
def test_what_is_no_plain_linux_price_is_refused(fields, reason):
    listings, rejects = read("aws", on_demand(row(), row(**fields)))
    assert len(listings) == 1
    assert [r.reason for r in rejects] == [reason]


def test_numbers_and_texts_and_unknown_regions():
    listings, _ = read("aws", on_demand(row(price=55.04, Location="Europe (Vienna)", vCPU="192", extra=[1])))
    assert short(listings) == [("p5.48xlarge", "on_demand", "Europe (Vienna)", "55.04")]
    assert listings[0].vcpus == 192


def test_a_government_region_is_flagged():
    listings, _ = read("aws", on_demand(row(), region="AWS GovCloud (US-West)"))
    assert (listings[0].region, listings[0].flag_reason) == ("us-gov-west-1", "restricted_region")


def test_the_older_spot_answer_in_its_wrapper():
    spot = page("aws", "spot.json").replace('"us-east-1"', '"us-east"')
    plain, _ = read("aws", answer(spot))
    wrapped, rejects = read("aws", answer(f"/* spot prices */\ncallback({spot});\n"))
    assert short(wrapped) == short(plain)
    assert ("p5.48xlarge", "spot", "us-east-1", "15.6472") in short(wrapped)
    assert [r.reason for r in rejects] == ["not_offered"] * 3


def test_windows_only_spot_is_refused():
    size = {"size": "p5.48xlarge", "valueColumns": [{"name": "mswin", "prices": {"USD": "20"}}]}
    region = {"region": "us-east-1", "instanceTypes": [{"type": "gpu", "sizes": [size]}]}
    listings, rejects = read("aws", answer({"config": {"regions": [region]}}))
    assert listings == []
    assert [r.reason for r in rejects] == ["missing_field"]


COLUMNS = [
    "SKU", "OfferTermCode", "RateCode", "TermType", "PriceDescription", "EffectiveDate", "StartingRange",
    "EndingRange", "Unit", "PricePerUnit", "Currency", "LeaseContractLength", "PurchaseOption",
    "OfferingClass", "Location", "Instance Type", "Tenancy", "Operating System", "CapacityStatus",
    "Pre Installed S/W", "Region Code", "MarketOption", "GPU",
]  # fmt: skip


def bulk(*rows, columns=COLUMNS):
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    for line in (
        ["FormatVersion", "v1.0"],
        ["Disclaimer", "x"],
        ["Publication Date", "2026"],
        ["Version", "1"],
    ):
        writer.writerow(line)
    writer.writerow(["OfferCode", "AmazonEC2"])
    writer.writerow(columns)
    for fields in rows:
        writer.writerow([fields.get(name, "") for name in columns])
    return answer(out.getvalue())


def csv_row(**fields):
    names = {"instance": "Instance Type", "os": "Operating System", "software": "Pre Installed S/W"}
    usual = {
        "SKU": "S1", "OfferTermCode": "T1", "TermType": "OnDemand", "EffectiveDate": "2026-08-01",
        "Unit": "Hrs", "PricePerUnit": "55.0400000000", "Currency": "USD", "Instance Type": "p5.48xlarge",
        "Tenancy": "Shared", "Operating System": "Linux", "CapacityStatus": "Used",
        "Pre Installed S/W": "NA", "Region Code": "us-east-1", "MarketOption": "OnDemand", "GPU": "8",
    }  # fmt: skip
    return usual | {names.get(name, name): value for name, value in fields.items()}


def reserved(code, option, lease="1yr", **fields):
    return csv_row(
        TermType="Reserved", OfferTermCode=code, LeaseContractLength=lease, PurchaseOption=option,
        OfferingClass="standard", **fields,
    )  # fmt: skip


def test_the_bulk_list_adds_up_reservations():
    listings, rejects = read(
        "aws",
        bulk(
            csv_row(),
            reserved("R1", "No Upfront", PricePerUnit="35.0"),
            reserved("R2", "All Upfront", Unit="Quantity", PricePerUnit="300000"),
            reserved("R2", "All Upfront", PricePerUnit="0.0000000000"),
            reserved("R3", "Partial Upfront", lease="3yr", PricePerUnit="10.0"),
            reserved("R3", "Partial Upfront", lease="3yr", Unit="Quantity", PricePerUnit="262800"),
            csv_row(SKU="S2", os="Windows"),
            csv_row(SKU="S3", Tenancy="Dedicated"),
            csv_row(SKU="S4", CapacityStatus="UnusedCapacityReservation"),
            csv_row(SKU="S5", software="SQL Web"),
            csv_row(SKU="S6", MarketOption="CapacityBlock"),
            csv_row(SKU="S7", instance="m5.large"),
        ),
    )
    assert rejects == []
    assert [(r.price_kind, r.term_days, r.tier, r.native_unit, r.native_price) for r in listings] == [
        ("on_demand", None, None, "instance_hour", Decimal("55.04")),
        ("reserved", 365, "standard no upfront", "instance_hour", Decimal(35)),
        ("reserved", 365, "standard all upfront", "instance_term", Decimal(300000)),
        ("reserved", 1095, "standard partial upfront", "instance_term", Decimal(262800 + 262800)),
    ]


def test_bulk_columns_may_move_and_a_coming_price_carries_its_day():
    moved = list(reversed(COLUMNS))
    moved.remove("MarketOption")
    listings, _ = read("aws", bulk(csv_row(EffectiveDate="2026-12-01"), columns=moved))
    assert short(listings) == [("p5.48xlarge", "on_demand", "us-east-1", "55.04")]
    assert listings[0].effective_from == date(2026, 12, 1)
    (leased,), _ = read(
        "aws", bulk(reserved("R1", "No Upfront", PricePerUnit="35", EffectiveDate="2026-12-01"))
    )
    assert (leased.price_kind, leased.effective_from) == ("reserved", date(2026, 12, 1))


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([reserved("R2", "All Upfront", Unit="Quantity", PricePerUnit="300000")], "unknown_terms"),
        ([reserved("R1", "No Upfront", PricePerUnit="0")], "zero_price"),
        ([reserved("R1", "No Upfront", lease="5yr", PricePerUnit="9")], "unknown_term_length"),
        ([csv_row(), csv_row(PricePerUnit="60")], "unknown_terms"),
    ],
)
def test_terms_that_do_not_add_up_are_refused(rows, reason):
    listings, rejects = read("aws", bulk(*rows))
    assert listings == []
    assert [r.reason for r in rejects] == [reason]


def test_the_bulk_list_is_read_in_bounded_memory():
    many = bulk(csv_row(), *(csv_row(instance="m5.large", SKU=f"M{at}") for at in range(30_000)))
    tracemalloc.start()
    listings = list(read_aws([many], source_config("aws")))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(listings) == 1
    assert peak < len(many.body) / 4


@pytest.mark.parametrize(
    "body",
    [
        '{"regions": {"US East (N. Virginia)": {"p5',
        {"regions": {}},
        {"regions": []},
        {"regions": {VIRGINIA: {"a": {"Type": "p5.48xlarge", "price": "55"}}}},
        {"regions": {VIRGINIA: {"a": row(**{"Instance Type": "m5.large"})}}},
        {"config": {"regions": [{"region": "us-east-1", "types": []}]}},
        {"config": {"regions": [{"instanceTypes": []}]}},
        "callback({not json});",
        '"FormatVersion","v1.0"\n"a","b"\n',
        '"FormatVersion","v1.0"\n"SKU","OfferTermCode","TermType"\n"x","y","z"\n',
        "[]",
    ],
)
def test_another_shape_is_a_clear_failure(body):
    with pytest.raises(SourceChangedError):
        read("aws", answer(body))


ROW = {"Instance Type": "p5.48xlarge", "price": "55.0400000000", "Location": "US West (Oregon)"}


def test_rows_without_their_envelope_are_read_too():
    keyed = {"p5 48xlarge US West Oregon Linux": ROW, "lastUpdated": "2026-10-01"}
    listings, rejects = read("aws", answer(keyed))
    assert [(row.instance_type, str(row.native_price), row.region) for row in listings] == [
        ("p5.48xlarge", "55.0400000000", "us-west-2")
    ]
    assert [reject.reason for reject in rejects] == ["unreadable_row"]
    bare = {key: value for key, value in ROW.items() if key != "Location"} | {"Operating System": "Linux"}
    listings, _ = read("aws", answer([bare]))
    assert [row.region for row in listings] == [None]
    named = answer([bare], url="https://b0.p.awsstatic.com/x/Asia%20Pacific%20(Tokyo)/Linux/index.json")
    assert [row.region for row in read("aws", named)[0]] == ["ap-northeast-1"]


def test_software_left_open_is_none():
    regions = {"US West (Oregon)": {"p5 48xlarge Linux": ROW | {"Pre Installed S/W": None}}}
    assert len(read("aws", answer({"regions": regions}))[0]) == 1


def test_one_region_that_answers_something_else_does_not_take_the_others_along():
    listings, rejects = read("aws", answer("<html>busy</html>"), answer({"p5 48xlarge Linux": ROW}))
    assert [row.region for row in listings] == ["us-west-2"]
    assert [reject.reason for reject in rejects] == ["unreadable_answer"]


AWS = source_config("aws")


def test_every_region_that_is_open_to_everybody_is_asked_once() -> None:
    first, *further = requests(AWS, {})
    on_demand = [region_of(request.url) for request in (first, *further[:-1])]
    open_to_all = {code for code in AWS.settings["regions"].values() if not code.startswith("us-gov-")}
    assert sorted(on_demand) == sorted(open_to_all)
    assert (region_of(first.url), first.optional) == ("us-east-1", False)
    assert all(request.optional for request in further)
    assert further[-1].url.endswith("/spot.json")
    assert all(place_of("aws", region).country for region in open_to_all)


def region_of(url: str) -> str:
    return AWS.settings["regions"][unquote(url).split("/")[-3]]


def test_a_region_is_asked_under_each_spelling_of_its_name() -> None:
    """Some addresses have EU where others have Europe."""
    spelled = {}
    for request in requests(AWS, {})[:-1]:
        chain = [request.url]
        while following := retry_requests(answer("", chain[-1]), AWS):
            chain += [each.url for each in following]
        spelled[region_of(request.url)] = [unquote(url).split("/")[-3] for url in chain]
    assert spelled["eu-central-1"] == ["EU (Frankfurt)", "Europe (Frankfurt)"]
    assert spelled["eu-south-2"] == ["Europe (Spain)", "EU (Spain)"]
    assert {region for region, names in spelled.items() if len(names) > 1} == {
        region for region in spelled if region.startswith("eu-")
    }
    assert retry_requests(answer("", AWS.requests[-1].url), AWS) == []
