"""The commands of the guide "A second machine" in ``docs/scale.md``."""

import re
import shlex

from support.guide_files import DOCS


def guide():
    """Arguments of each ``coevo`` command of the section, in order."""
    page = (DOCS / "scale.md").read_text(encoding="utf-8")
    section = page.partition("## A second machine\n")[2].partition("\n## ")[0]
    return [shlex.split(line) for line in re.findall(r"^\$ coevo (.+)$", section, re.M)]
