"""DeepSpeed's shards by arithmetic: masters and moments in fp32 over n, buckets as they are configured."""

from importlib.util import find_spec

import pytest

if find_spec("deepspeed") is None:
    pytest.skip("needs DeepSpeed, which is not in the tracer's lock", allow_module_level=True)

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.timeline import Category, Phase
from tests.steps import test_sharding as tiny

GPUS = 4


@pytest.mark.parametrize("sharding", ["zero2", "zero3"])
def test_masters_and_moments_are_fp32_over_n(sharding):
    step = tiny.traced(sharding, zero_buckets="auto").phase(Phase.OPTIMIZER).by_category
    share = tiny.PARAMETERS / GPUS * tiny.FP32
    assert step[Category.OPTIMIZER] == pytest.approx(3 * share, rel=tiny.ROUNDING)


def test_zero_2_keeps_whole_weights_and_zero_3_a_share():
    whole, share = (
        tiny.traced(sharding, zero_buckets="auto").phase(Phase.FORWARD).by_category[Category.WEIGHTS]
        for sharding in ("zero2", "zero3")
    )
    assert whole == pytest.approx(tiny.PARAMETERS * tiny.BF16, rel=tiny.ROUNDING)
    assert share < whole / 2


@pytest.mark.parametrize("sharding", ["zero2", "zero3"])
def test_a_bucket_has_the_size_that_is_configured(sharding):
    def peak(buckets: str) -> int:
        return tiny.traced(sharding, zero_buckets=buckets).phase(Phase.BACKWARD).allocated_bytes

    default_elements = 500_000_000
    more = (default_elements - tiny.HIDDEN**2) * tiny.BF16
    assert peak("default") - peak("auto") == pytest.approx(more, rel=tiny.ROUNDING)


@pytest.mark.parametrize("sharding", ["zero2", "zero3"])
def test_only_adapters_have_masters_and_moments(sharding):
    found = tiny.traced(sharding, zero_buckets="auto", method="lora")
    share = found.trainable_parameters / GPUS * tiny.FP32
    step = found.phase(Phase.OPTIMIZER).by_category
    assert step[Category.OPTIMIZER] == pytest.approx(3 * share, rel=tiny.ROUNDING)


def test_offloading_is_refused_by_name():
    with pytest.raises(CannotTraceError, match="set cpu_offload to false"):
        tiny.traced("zero2", cpu_offload=True)


def test_traces_repeat():
    first = tiny.traced("zero3", zero_buckets="auto")
    tiny.traced.cache_clear()
    assert tiny.traced("zero3", zero_buckets="auto") == first
