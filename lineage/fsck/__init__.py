"""Checking a run's lineage: each module looks at one store and yields findings, and writes nothing."""
