"""AppWorld's data and interpreter for tests: a few tasks in its files, and a stand-in of its package."""

import json
import sys
from pathlib import Path

STANDIN = Path(__file__).with_name("standin_world")
SETS = {"train": 6, "dev": 4, "test_normal": 3, "test_challenge": 2}
NAMES = ("ann", "bob", "cem", "dea")
SOLUTION = "def solution(apis, requester):\n    apis.mail.send({to!r})\n    apis.supervisor.complete_task()\n"


def interpreter(folder):
    """A program that starts this interpreter with the stand-in as its ``appworld``."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nPYTHONPATH={STANDIN} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


def app_data(folder, **changed):
    """Folder of a data set with the tasks of ``SETS``; ``changed`` replaces fields of all of them."""
    number = 0
    for split, count in SETS.items():
        names = [f"a{number + index:02d}b_{index % 3 + 1}" for index in range(count)]
        number += count
        listed = folder / "data" / "datasets" / f"{split}.txt"
        listed.parent.mkdir(parents=True, exist_ok=True)
        listed.write_text("\n".join(names) + "\n")
        for index, name in enumerate(names):
            _write(folder / "data" / "tasks" / name, index, split, changed)
    (folder / "data" / "version.txt").write_text("0.1.0")
    return folder


def _write(folder, index, split, changed):
    to = NAMES[index % len(NAMES)]
    supervisor = {"first_name": "Mo", "last_name": "Li", "email": "mo@li.test", "phone_number": "555"}
    specs = {"instruction": f"Send a mail to {to}.", "supervisor": supervisor, "to": to, **changed}
    (folder / "ground_truth").mkdir(parents=True)
    (folder / "specs.json").write_text(json.dumps(specs))
    (folder / "ground_truth" / "metadata.json").write_text(json.dumps({"difficulty": index % 3 + 1}))
    if split in ("train", "dev"):
        (folder / "ground_truth" / "compiled_solution.py").write_text(SOLUTION.format(to=to))
