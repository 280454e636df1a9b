"""Turns listings into offers: the GPU, the number of GPUs, and the price in dollars per hour."""
