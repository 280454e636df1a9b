"""``python -m pipeline.cli``."""

from pipeline.cli.main import main

main()
