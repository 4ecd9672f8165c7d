"""Files that a page of the documentation describes, as a reader would copy them."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```\w+ (?P<file>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def files_of(page):
    """Text of each file of a page, by name; what the page adds to a file later is at its end."""
    files = {}
    for block in BLOCK.finditer((DOCS / page).read_text(encoding="utf-8")):
        files[block["file"]] = files.get(block["file"], "") + block["text"] + "\n"
    return files
