"""The training steps of each framework, built from its own code on the fake device."""
