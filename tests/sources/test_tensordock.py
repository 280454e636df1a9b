"""TensorDock's two shapes, and that a GPU's price is never taken for a machine's."""

from tests.sources.edited_pages import sample_row

GPU = sample_row("tensordock", "locations.json", "data", "locations", 1, "gpus", 1)
HOST = {
    "status": {"online": True},
    "location": {"country": "United States", "region": "Texas", "city": "Dallas"},
    "specs": {
        "gpu": {"l40-pcie-48gb": {"amount": 8, "price": 0.95}},
        "cpu": {"amount": 96, "price": 0.003},
        "storage": {"amount": 4000, "price": 0.00005},
    },
}
COLUMNS = "raw_label native_price region available tier storage_usd_per_gb_month flag_reason"
EXTRA = "cpu_and_memory_charged_extra"
