"""The training steps of each framework, built from the framework's own code on the fake device."""
