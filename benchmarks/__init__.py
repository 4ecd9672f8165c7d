"""What the loop achieves and what it costs, measured with the ``coevo`` command: ``python -m benchmarks``."""
