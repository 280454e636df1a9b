"""What passes between rooms, and nothing else."""
