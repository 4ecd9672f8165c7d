"""The example of docs/bank-alone.md, as it stands there."""

import json
import os
import re
import shutil
import subprocess
import sys
from inspect import getmembers, isfunction
from pathlib import Path

import pytest

import coevo
from coevo.flows.bank_server.bank_app import OPEN_PATH, bank_app
from coevo.flows.bank_server.bank_service import BankService
from coevo.flows.bank_server.bank_tokens import BankTokens
from coevo.flows.endpoint.origin_guard import hosts_of
from coevo.tasks.bank_alone.bank_reader import BankReader
from coevo.tasks.bank_alone.standalone_bank import RETRIEVALS, BankHistory, StandaloneBank

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "bank-alone.md").read_text(encoding="utf-8")


def test_the_example_runs_and_does_what_the_page_says(tmp_path):
    text = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = [sys.executable, "-c", text]
    done = subprocess.run(script, cwd=tmp_path, env=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second, report, log, written, third, pruned = done.stdout.splitlines()
    assert (first, second) == ("the mug is in the safe True", "the key is in the safe False")
    assert "entries=1, tested=1.0, never_retrieved=(), near_duplicates=(), contradictions=()" in report
    assert re.findall(r"'(\w+)', ", log) == ["create", "propose", "learn", "outcomes", "retire", "rollback"]
    assert (tmp_path / "lessons.jsonl").read_text().count("\n") == 1
    assert (written, third, pruned) == ("2 2", "the key is in the drawer True", "6 the mug is in the safe")


def test_the_commands_of_the_server_do_what_the_page_says(tmp_path):
    serve, token, ask = re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    coevo.open_bank(tmp_path / "bank").add(["the mug is in the safe"], scope={"user": "ann"})
    own = f"{sys.executable} -P -m coevo.flows"
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = serve.replace("coevo", own).replace("--port 8800", "--port 0").split()
    server = subprocess.Popen(command, cwd=tmp_path, env=here, stdout=subprocess.PIPE, text=True)
    try:
        (url,) = re.findall(r"http://127\.0\.0\.1:\d+", server.stdout.readline())
        script = "\n".join(
            [token.replace("coevo", own), ask.replace("http://127.0.0.1:8800", url).replace("curl", "curl -s")]
        )
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=here, capture_output=True, text=True, check=False
        )
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    assert [row["strategy"] for row in json.loads(done.stdout)["lessons"]] == ["the mug is in the safe"], done.stderr


def test_the_table_names_every_address(tmp_path):
    app = bank_app(BankService(tmp_path / "bank"), BankTokens(tmp_path / "bank"), hosts_of("127.0.0.1", []))
    paths = {route.path for route in app.routes} | {"/mcp"}
    assert set(re.findall(r"^\| `(/\w+)`", PAGE, re.MULTILINE)) == paths - {OPEN_PATH}


def test_the_page_names_every_method_and_retrieval():
    methods = {name for kind in (BankReader, StandaloneBank, BankHistory) for name, _ in getmembers(kind, isfunction)}
    public = {name for name in methods if not name.startswith("_")} - {"entries", "candidates", "stats"}
    assert {name for name in public if not re.search(rf"\b{name}\(|`{name}`", PAGE)} == set()
    assert all(f'"{name}"' in PAGE for name in RETRIEVALS if name != "tfidf")
