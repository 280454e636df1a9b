"""Scaleway: servers by name, in the zone of the address, and the availability in another answer."""

from typing import Any

from tests.sources.edited_pages import misread, outcome
from tests.sources.helpers import answer

ZONE = "https://api.scaleway.com/instance/v1/zones/fr-par-2/products/servers"
INFO = {"gpu_manufacturer": "NVIDIA", "gpu_name": "H100-SXM", "gpu_memory": 85899345920}
SERVER = {"gpu": 2, "gpu_info": INFO, "hourly_price": 6.6198, "end_of_service": False}


def test_availability_belongs_to_its_own_zone() -> None:
    def stock(state: Any) -> Any:
        stocked, sold = ({"servers": {"H100-SXM-2-80G": of}} for of in ({"availability": state}, SERVER))
        return answer(stocked, f"{ZONE}/availability"), answer(sold, ZONE)

    cases = [("available", [True]), ("Scarce", [True]), ("shortage", [False]), ("by arrangement", [None])]
    assert not misread("scaleway", stock, cases, "available")
    of_fr_par, types = stock("available")
    elsewhere = answer(of_fr_par.body, of_fr_par.url.replace("fr-par-2", "pl-waw-2"))
    assert outcome("scaleway", elsewhere, types, columns="available") == [None]
