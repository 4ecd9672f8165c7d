"""Baselines of rewards (RetroAgent's Phi): what each task's group once achieved, kept with the revision.

``baselines/baselines.json`` maps task ids to the highest mean success of a group so far; an artifact like the policy,
so that a resumed or rolled-back run goes on from the baselines of its revision.
"""

import json
from collections.abc import Mapping
from pathlib import Path

FOLDER = "baselines"
"""Name of the artifact."""
FILE = "baselines.json"


def write_baselines(baselines: Mapping[str, float], staging: Path) -> None:
    """Stage the baselines for the commit."""
    directory = staging / FOLDER
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(dict(baselines), sort_keys=True, indent=0)
    (directory / FILE).write_text(text + "\n", encoding="utf-8")


def read_baselines(directory: Path | None) -> dict[str, float]:
    """The baselines in a committed artifact; none where there is none."""
    return {} if directory is None else dict(json.loads((directory / FILE).read_text(encoding="utf-8")))
