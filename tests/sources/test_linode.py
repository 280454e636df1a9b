"""Linode's list of types: a price per plan, and others per region."""

from typing import Any

SMALL: dict[str, Any] = {
    "id": "g2-gpu-rtx4000a2-s",
    "label": "RTX4000 Ada x2 Small",
    "class": "gpu",
    "gpus": 2,
    "vcpus": 8,
    "memory": 32768,
    "disk": 1048576,
    "price": {"hourly": 1.05, "monthly": 700.0},
    "region_prices": [{"id": "id-cgk", "hourly": 1.26, "monthly": 840.0}],
}
