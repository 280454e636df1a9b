"""A user's own GPUs: gpus.csv in the home, in the columns of catalog/gpus.csv, with all that a plan needs,
and the ``labels`` of offers that mean them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipeline.catalog.own_rows import Name, OwnFile

USABLE_SHARE = 0.975
"""Of the nominal memory, where the row does not say what a program gets; as in catalog/gpus.csv."""

_Text = Annotated[str, Field(max_length=300)]
_Amount = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]


class OwnGpu(BaseModel):
    """A row of a user's own GPUs: specifications of one GPU, dense peaks in 10^12 operations per second."""

    model_config = ConfigDict(frozen=True)

    gpu_id: Name
    vendor: Literal["nvidia", "amd", "intel"]
    architecture: _Text
    model: _Text
    form_factor: _Text | None = None
    memory_gb: _Amount
    memory_type: _Text | None = None
    bandwidth_gb_s: _Amount
    bf16_dense_tflops: _Amount | None = None
    fp16_dense_tflops: _Amount
    fp8_dense_tflops: _Amount | None = None
    fp4_dense_tflops: _Amount | None = None
    fp32_tflops: _Amount
    gemm_bf16_measured_tflops: _Amount | None = None
    gemm_fp16_measured_tflops: _Amount | None = None
    tdp_w: _Amount
    year: Annotated[int, Field(ge=2010, le=2100)]
    nvlink_gb_s: _Amount | None = None
    nvlink_topology: Literal["switched", "mesh", "bridge"] | None = None
    pcie_gen: Annotated[float, Field(ge=1, le=9)]
    peer_to_peer: bool
    max_gpus_per_node: Annotated[int, Field(ge=1, le=64)]
    segment: Literal["datacenter", "workstation", "consumer", "legacy"]
    usable_memory_gib: _Amount | None = None
    gpus_per_board: Annotated[int, Field(ge=1, le=16)] = 1
    source: _Text | None = None
    notes: _Text | None = None
    labels: Annotated[str, Field(max_length=2000)] = ""

    @model_validator(mode="after")
    def _is_a_card(self) -> "OwnGpu":
        if (self.nvlink_gb_s is None) != (self.nvlink_topology is None):
            raise ValueError("nvlink_gb_s and nvlink_topology belong together: give both or neither")
        if (self.usable_memory_gib or 0) > self.memory_gb:
            raise ValueError(f"usable_memory_gib is {self.usable_memory_gib:g}, of {self.memory_gb:g} GB")
        measured = self.gemm_bf16_measured_tflops or 0
        if measured > (self.bf16_dense_tflops or 0):
            raise ValueError(f"gemm_bf16_measured_tflops is {measured:g}, above bf16_dense_tflops")
        return self

    def names(self) -> list[str]:
        """The labels of offers that mean it, as they are compared: lower case, single blanks."""
        return [" ".join(label.lower().split()) for label in self.labels.split("|") if label.strip()]

    def row(self) -> dict[str, Any]:
        """The row of main.gpus. Its confidence says whose it is."""
        taken = self.usable_memory_gib is None
        share = f"usable memory taken as {USABLE_SHARE:.1%} of nominal" if taken else None
        return self.model_dump(exclude={"labels"}) | {
            "usable_memory_gib": self.usable_memory_gib or round(USABLE_SHARE * self.memory_gb, 2),
            "has_full_specs": True,
            "named_without_memory": False,
            "source": self.source or "your own GPUs",
            "confidence": "own",
            "notes": "; ".join(filter(None, (self.notes, share))) or None,
        }


OWN_GPUS = OwnFile(
    "GPU",
    OwnGpu,
    "gpu_id",
    tuple(OwnGpu.model_fields),
    "catalog/gpus.csv, and not labels",
    frozenset({"has_full_specs", "named_without_memory", "derived_from", "confidence"}),
)
