"""A finished run in the package, so that its pages can be viewed before any training.

It is the run of ``make run`` without weights: history, bank, episodes. ``pack`` packs it.
"""

from pathlib import Path

FOLDER = "sample"
"""Name of the sample's own workspace, within the user's."""
RUN = "homerules-coevo-rl-1"
"""Name of the run."""
ARCHIVE = Path(__file__).with_name("run.tar.xz")
"""Archive in the package, with paths as in a workspace."""
