"""docs/python.md from top to bottom, as a reader would run it, in a workspace with servers."""

import os
import re
import subprocess
import sys

import pytest
from support.runs import ROOT

BLOCK = re.compile(r"^```python\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_page_runs_from_top_to_bottom(workspace, tmp_path):
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    (tmp_path / "page.py").write_text("\n".join(block["text"] for block in BLOCK.finditer(page)), encoding="utf-8")
    here = {**os.environ, "COEVO_WORKSPACE": str(workspace), "PYTHONPATH": str(ROOT)}
    here.pop("MLFLOW_TRACKING_URI", None)
    script = [sys.executable, "page.py"]
    done = subprocess.run(script, cwd=tmp_path, env=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "household/1 is champion" in done.stdout
    assert "agent/success/seen-houses" in done.stdout
    assert done.stdout.count("undecided") == 2
