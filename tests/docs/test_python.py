"""docs/python.md from top to bottom, as a reader would run it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.runs import coevo

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.full
def test_the_page_runs_from_top_to_bottom(tmp_path):
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    (tmp_path / "page.py").write_text("\n".join(block["text"] for block in BLOCK.finditer(page)), encoding="utf-8")
    here = {**os.environ, "COEVO_WORKSPACE": str(tmp_path / "workspace"), "PYTHONPATH": str(ROOT)}
    for name in ("MLFLOW_TRACKING_URI", "PREFECT_API_URL"):
        here.pop(name, None)
    try:
        done = subprocess.run(
            [sys.executable, "page.py"], cwd=tmp_path, env=here, capture_output=True, text=True, check=False
        )
    finally:
        coevo("down", workspace=tmp_path / "workspace")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "household/1 is champion" in done.stdout
    assert "success/seen-houses" in done.stdout
