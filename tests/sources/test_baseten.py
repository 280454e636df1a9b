"""Baseten's slices of a GPU: their share by their memory."""

from pipeline.gpus import identify
from tests.sources.helpers import answer, read


def test_the_memory_of_a_slice_gives_its_share() -> None:
    for label, vram, gpu_id, gpu_count in (
        ("H100 MIG", 40, "h100-80gb", 0.5),
        ("H100MIG", 40, "h100-80gb", 0.5),
        ("H100", 40, None, 1),  # nothing says that it is a slice
        ("A100 MIG", 40, None, None),  # a whole card of 40 GB or half of one of 80 GB
    ):
        row = f"<p>{label}</p><p>{vram} GiB VRAM, 13 vCPUs, 117 GiB RAM</p><p>$0.06250</p>"
        (listing,), rejects = read("baseten", answer(row))
        found = identify(
            listing.raw_label, provider="baseten", context=listing.context, gpu_count=listing.gpu_count
        )
        assert (found.gpu_id, rejects) == (gpu_id, [])
        assert found.gpu_count == gpu_count or gpu_id is None
