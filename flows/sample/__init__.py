"""A finished run that the package brings, so that there is something to look at before anything was trained.

It is a run as ``coevo run homerules-coevo-rl --name sample`` leaves it, all but its weights: history, bank, episodes.
``python -m flows.sample`` packs it.
"""

from pathlib import Path

RUN = "sample"
"""Its name."""
ARCHIVE = Path(__file__).with_name("run.tar.xz")
"""What the package brings: files as they lie in a workspace."""
