"""A training step measured on this machine's GPU, beside the estimate of the same run.

``measure`` runs a recipe's step in a separate process (``run_steps``, the only module here that imports
torch) and asks nvidia-smi about the card (``card``). ``report`` puts the estimate beside the measurement, and
adds the row to the user's own runs (``pipeline.model.own_runs``). No published table changes.
"""
