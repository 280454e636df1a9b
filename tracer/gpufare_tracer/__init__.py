"""The true memory and work of a training step, traced without a GPU.

The recipe's own code (transformers, PEFT, bitsandbytes, or a user's step) runs on fake CUDA tensors on one
core: nothing is computed, but every allocation and operation is recorded. Only the modules that run a step
import torch, so commands that run no step answer at once.
"""
