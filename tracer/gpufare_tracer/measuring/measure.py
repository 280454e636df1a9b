"""``gpufare measure``: runs the steps of a request in another process, and reports the measurements."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import ValidationError

from gpufare_tracer.architectures import architecture_of
from gpufare_tracer.measuring import card
from gpufare_tracer.measuring.report import CONFIG_MODEL, Report, report
from gpufare_tracer.measuring.result import Failure, Measured, Request
from pipeline.catalog.own import OwnModel
from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import Home
from pipeline.model.estimate import Estimator
from pipeline.model.given_models import model_of_config
from pipeline.model.model_names import RunError
from pipeline.model.run_settings import RunRow

ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
"""Environment variables that change how much memory torch reserves."""


class MeasureError(GpufareError):
    """Nothing was measured; the message says why, and what to do."""


def measure(request: Request, home: Home, now: datetime, *, gpu: str | None = None) -> Report:
    """Run the steps on this machine's GPU, compare them with the estimate, and keep the row in the home.

    ``gpu`` is the card's catalogue id, for a card whose name does not identify it. Raises MeasureError.
    """
    check(request)
    given, problem = _given_model(request)
    with closing(Estimator(given)) as estimator:
        if gpu is not None:
            _check_gpu(gpu, estimator)
        before, notes = _cards(request)
        notes += filter(None, [problem])
        notes += [f"{name}={os.environ[name]}" for name in ALLOCATOR if os.environ.get(name)]
        measured = run_in_another_process(request)
        return report(request, measured, before, estimator, home, now, gpu=gpu, notes=notes)


def _given_model(request: Request) -> tuple[OwnModel | None, str]:
    """Return the shape in a given config.json, if it can be read, and a note on the parts not estimated."""
    if request.shape.config is None:
        return None, ""
    try:
        model, left_out = model_of_config(request.shape.config, CONFIG_MODEL, "--config")
    except GpufareError as error:
        return None, f"not estimated: {error}"
    return model, "; ".join(left_out)


def _check_gpu(gpu: str, estimator: Estimator) -> None:
    try:
        estimator.gpu_of(gpu, RunRow({}))
    except RunError as error:
        raise MeasureError(f"--gpu: {error}; see: gpufare sql 'FROM gpus'") from error


def check(request: Request) -> None:
    """Refuse impossible requests before anything is loaded.

    Raises MeasureError for a recipe that cannot be measured, and CannotTraceError for an unknown model.
    """
    recipe = request.recipe
    emulated = {
        f"emulates={recipe.emulates}": recipe.emulates is not None,
        f"kernels={recipe.kernels}": recipe.kernels == "unsloth",
        "quantization=gptq": recipe.quantization == "gptq",
        "activation_offload=true": recipe.activation_offload,
        f"sharding={recipe.sharding}": recipe.sharding != "none",
    }
    found = [name for name, is_so in emulated.items() if is_so]
    if found:
        raise MeasureError(
            f"recipe {recipe.name!r} cannot be measured ({', '.join(found)}): only steps of transformers and "
            f"PEFT on one GPU can, with their own kernels or Liger's, such as --recipe hf-{recipe.method}"
        )
    if request.on_cpu and (recipe.kernels == "liger" or recipe.loss == "fused_linear"):
        raise MeasureError(
            f"recipe {recipe.name!r} runs Liger's kernels, which need a GPU: with --cpu, choose --recipe "
            f"hf-{recipe.method}"
        )
    if request.on_cpu and "paged" in recipe.optimizer:
        raise MeasureError(
            f"recipe {recipe.name!r} has the optimizer {recipe.optimizer}, whose memory is paged from a GPU: "
            "with --cpu, add --set optimizer=adamw_fused"
        )
    architecture_of(request.shape)


def _cards(request: Request) -> tuple[dict[str, card.Card], list[str]]:
    """Return the cards before the run and, if nvidia-smi did not answer, a note on what is not known."""
    if request.on_cpu:
        return {}, []
    try:
        return card.cards(), []
    except card.NoCardsError as error:
        return {}, [f"{error}: the card's power limit, partitions and other processes are not known"]


def run_in_another_process(request: Request) -> Measured:
    """Run the steps in another process. Raises MeasureError if the steps cannot run or the process dies."""
    # Libraries warn about many things that the user did not cause.
    environment = os.environ | {"PYTHONWARNINGS": "ignore", "TRANSFORMERS_VERBOSITY": "error"}
    with TemporaryDirectory(prefix="gpufare-measure-") as folder:
        asked, answer = Path(folder, "request.json"), Path(folder, "result.json")
        asked.write_text(request.model_dump_json(), encoding="utf-8")
        # With -P, modules in the working folder do not shadow library modules.
        command = [sys.executable, "-P", "-m", "gpufare_tracer.measuring.run_steps", str(asked), str(answer)]
        done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)  # noqa: S603 (our own code)
        text = answer.read_text(encoding="utf-8") if answer.exists() else ""
    if done.returncode == -signal.SIGKILL:
        raise MeasureError(
            "the steps' process was killed, most likely because the host ran out of memory: take a machine "
            "with more of it, or cut the model with --layers"
        )
    if done.returncode:
        raise MeasureError(f"the steps' process ended with code {done.returncode}; what it said is above")
    try:
        return Measured.model_validate_json(text)
    except ValidationError:
        raise MeasureError(Failure.model_validate_json(text).problem) from None
