"""Reading of a seller's other columns: the subject and unit of each."""

import pytest

from pipeline.gpus.label import NO_COLUMNS, parse_columns

GIB = 1 << 30


@pytest.mark.parametrize(
    ("name", "value", "memory_gb"),
    [
        ("vram", "24", 24),
        ("vram", "999", 999),
        ("vram", "1000", 1000 / 1024),
        ("vram", "24 GB", 24),
        ("vram", "24gib", 24),
        ("vram", "24G", 24),
        ("vram", "24Gi", 24),
        ("vram", "24576 MB", 24),
        ("vram", "24576MiB", 24),
        ("vram", "24576 Mi", 24),
        ("vram", "24576M", 24),
        ("vram", "512 MiB", 0.5),
        ("vram", "2000 GB", 2000),
        ("vram_mib", "24 GB", 24),
        ("vram", "22,5 GB", 22.5),
        ("vram", "22.5", 22.5),
        ("vram", str(24 * GIB), 24),
        ("vram", str(GIB), 1),
        ("vram", str(GIB - 1), (GIB - 1) / 1024),
        ("vram", f"{GIB} bytes", 1),
        ("vram", f"{GIB}B", 1),
        ("vram_bytes", "512", 512 / GIB),
        ("vram_bytes", "24 GB", 24),
        ("vram_mib", "512", 0.5),
        ("vram_mb", "512", 0.5),
        ("vramMi", "512", 0.5),
        ("vram_gb", "2000", 2000),
        ("vram_gib", "2000", 2000),
        ("vram_Gi", "2000", 2000),
        ("gpu_memory", "24", 24),
        ("gpuRam", "24", 24),
        ("GPU mem", "24", 24),
        ("SizeInMiB", "24576", 24),
        ("size_mi", "24576", 24),
        ("vram", "about 24", None),
        ("vram", "24 GB each", None),
    ],
)
def test_a_memory_column_per_gpu(name: str, value: str, memory_gb: float | None) -> None:
    columns = parse_columns({name: value})
    assert columns.memory_gb == memory_gb
    assert (columns.total_memory_gb, columns.unassigned_memory_gb) == (None, None)


@pytest.mark.parametrize(
    ("name", "total_gb", "unassigned_gb"),
    [
        ("vram_total_gb", 96, None),
        ("gpuMemoryTotalGb", 96, None),
        ("total_memory_gb", None, None),
        ("memory_gb", None, 96),
        ("ram", None, 96),
        ("mem", None, 96),
        ("size", None, 96),
        ("disk", None, None),
    ],
)
def test_a_memory_column_of_all_gpus_or_perhaps_of_the_host(
    name: str, total_gb: float | None, unassigned_gb: float | None
) -> None:
    columns = parse_columns({name: 96})
    assert columns.memory_gb is None
    assert (columns.total_memory_gb, columns.unassigned_memory_gb) == (total_gb, unassigned_gb)


@pytest.mark.parametrize("name", ["gpu_count", "num_gpus", "gpuQuantity", "qty"])
def test_a_count_column(name: str) -> None:
    assert parse_columns({name: 8}).gpu_count == 8
    assert parse_columns({name: "0.5"}).gpu_count == 0.5
    assert parse_columns({name: "several"}).gpu_count is None
    assert parse_columns({name: "1.2.3"}).gpu_count is None


def test_a_count_column_is_not_a_memory_column() -> None:
    assert parse_columns({"gpu_memory_count": 8}).memory_gb is None


def test_form_factors_are_read_word_by_word() -> None:
    assert parse_columns({"socket": "SXM5"}).form_factors == {"SXM"}
    assert parse_columns({"interface": "PCIe-x16_mxm"}).form_factors == {"PCIe", "MXM"}
    assert parse_columns({"interconnect": "infiniband"}).form_factors == frozenset()
    assert parse_columns({"remark": "SXM5"}).form_factors == frozenset()


def test_columns_that_name_the_gpu() -> None:
    assert parse_columns({"gpu_name": "L40S", "model": "L40", "note": "L4"}).names == ("L40S", "L40")


def test_columns_in_text() -> None:
    columns = parse_columns("vram_gb=48; gpu count = 2, socket=PCIe; seen in May")
    assert (columns.memory_gb, columns.gpu_count, columns.form_factors) == (48, 2, {"PCIe"})


def test_no_columns() -> None:
    assert parse_columns({}) is NO_COLUMNS
    assert parse_columns("seen in May") is NO_COLUMNS
    assert parse_columns("480GB = CPU LPDDR5X") is NO_COLUMNS
