"""A finished run that the package brings, so that there is something to look at before anything was trained.

It is the run of ``make run``, all but its weights: history, bank, episodes. ``python -m flows.sample`` packs it.
"""

from pathlib import Path

FOLDER = "sample"
"""The workspace that it has to itself, within the person's own."""
RUN = "homerules-coevo-rl-1"
"""Its name."""
ARCHIVE = Path(__file__).with_name("run.tar.xz")
"""What the package brings: files as they lie in a workspace."""
