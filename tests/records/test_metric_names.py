"""Metrics of a revision are read in one place."""

import re
from pathlib import Path


def test_nothing_but_the_manifest_reads_names_as_they_were_written():
    rooms = ("benchmarks", "envs", "flows", "lineage", "memory", "models", "tasks")
    paths = [path for room in rooms for path in (Path(__file__).parents[2] / room).rglob("*.py")]
    readers = [path.name for path in paths if re.search(r"(state|observed)(\[|\.get\()\"metrics\"", path.read_text())]
    assert readers == ["manifest.py"]
