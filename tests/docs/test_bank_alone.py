"""The example of docs/bank-alone.md, as it stands there."""

import os
import re
import subprocess
import sys
from inspect import getmembers, isfunction
from pathlib import Path

from coevo.tasks.bank_alone.bank_reader import BankReader
from coevo.tasks.bank_alone.standalone_bank import RETRIEVALS, StandaloneBank

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "bank-alone.md").read_text(encoding="utf-8")


def test_the_example_runs_and_does_what_the_page_says(tmp_path):
    (text,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = [sys.executable, "-c", text]
    done = subprocess.run(script, cwd=tmp_path, env=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second, report, log = done.stdout.splitlines()
    assert (first, second) == ("the mug is in the safe True", "the key is in the safe False")
    assert "entries=1, tested=1.0, never_retrieved=(), near_duplicates=(), contradictions=()" in report
    assert re.findall(r"'(\w+)', ", log) == ["create", "propose", "learn", "outcomes", "retire", "rollback"]
    assert (tmp_path / "lessons.jsonl").read_text().count("\n") == 1


def test_the_page_names_every_method_and_retrieval():
    methods = {name for kind in (BankReader, StandaloneBank) for name, _ in getmembers(kind, isfunction)}
    public = {name for name in methods if not name.startswith("_")} - {"entries", "candidates", "stats"}
    assert {name for name in public if not re.search(rf"\b{name}\(|`{name}`", PAGE)} == set()
    assert all(f'"{name}"' in PAGE for name in RETRIEVALS if name != "tfidf")
