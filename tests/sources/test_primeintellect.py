"""Prime Intellect's offers: whole-offer prices and whose machine each is."""

from typing import Any

OFFER: dict[str, Any] = {
    "cloudId": "c-1",
    "gpuType": "H100_80GB",
    "socket": "SXM5",
    "provider": "datacrunch",
    "region": "eu_north",
    "country": "FI",
    "gpuCount": 8,
    "gpuMemory": 640,
    "interconnect": 3200,
    "stockStatus": "Available",
    "security": "secure_cloud",
    "prices": {"onDemand": 28.0, "communityPrice": None, "isVariable": False, "currency": "USD"},
    "isSpot": False,
}
