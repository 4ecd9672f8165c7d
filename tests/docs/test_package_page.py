"""The client of docs/package.md, as it stands there, beside a served agent."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.gateway import chat_run, served
from support.small_run import MICROWAVE, MUG

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "package.md").read_text(encoding="utf-8")


@pytest.mark.full
@pytest.mark.timeout(300)
def test_the_client_runs_and_sees_what_the_page_says(tmp_path):
    (text,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    with served(chat_run(tmp_path)) as url:
        script = [sys.executable, "-c", text.replace("http://127.0.0.1:5005", url)]
        here = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
        done = subprocess.run(script, cwd=tmp_path, env=here, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    origins = [line for line in done.stdout.splitlines() if line.startswith("first@3 first@3 [")]
    assert len(origins) == 3
    assert all(MUG.id in line and MICROWAVE.id in line for line in origins)
    assert all(re.search(r"\] (True |False [a-z ]+$)", line) for line in origins)
