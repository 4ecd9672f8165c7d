"""The working directory: no process imports anything of it, whatever it is called, or writes anything there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHORT = "iterations=1 warmstart=null rollout.tasks=2 rollout.group_size=2 evaluation.tasks=8"
COMMANDS = (
    "ui",
    f"run homerules-coevo-rl --name one {SHORT} bank.admission.replays=2",
    *("log one", "report one", "compare one one@0", "evaluate one", "bank show one", "fsck one", "gc one"),
    *("package one", "push ../remote one", "branch one@1 other", "rollback one --to 0"),
)
NAMES = (
    *("prefect", "mlflow", "uvicorn", "fastapi", "deepspeed", "torch", "transformers", "peft", "lancedb", "numpy"),
    *("utilities", "configs", "records", "lineage", "models", "tasks", "flows", "envs", "memory"),
    *("json", "logging", "sitecustomize", "usercustomize", "sqlalchemy", "gunicorn", "flask", "pandas"),
)


@pytest.fixture
def trapped(tmp_path):
    """A directory with packages called as those that coevo needs; each leaves a mark when it is imported."""
    (tmp_path / "marks").mkdir()
    for name in NAMES:
        (tmp_path / "project" / name).mkdir(parents=True)
        mark = tmp_path / "marks" / name
        (tmp_path / "project" / name / "__init__.py").write_text(f"open({str(mark)!r}, 'w')\nraise SystemExit(9)\n")
    return tmp_path


def test_every_child_that_runs_python_is_told_so():
    """Python puts the working directory first for ``-m`` and ``-c``; ``-P`` and ``-I`` leave it out."""
    sources = [
        path
        for folder in ("flows", "models", "tasks", "memory", "utilities", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    ]
    started = [
        found for path in sources for found in re.findall(r'sys\.executable\)?\}?[, ]+"?(\S+)', path.read_text())
    ]
    flags = [flag for flag in started if flag.startswith("-")]
    assert len(flags) >= 7
    assert {flag.strip('",') for flag in flags} == {"-P", "-IS"}


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_run_and_its_servers_import_nothing_from_there_and_write_nothing_there(trapped):
    outside = {name: value for name, value in os.environ.items() if name not in ("PREFECT_API_URL", "PYTHONPATH")}

    def coevo(*arguments):
        command = [Path(sys.executable).with_name("coevo"), *arguments, "--workspace", trapped / "workspace"]
        done = subprocess.run(
            command, cwd=trapped / "project", env=outside, capture_output=True, text=True, check=False, timeout=500
        )
        assert (done.returncode, sorted(path.name for path in (trapped / "marks").iterdir())) == (0, []), done.stderr

    try:
        for line in COMMANDS:
            coevo(*line.split())
    finally:
        coevo("down")
    assert sorted(path.name for path in (trapped / "project").iterdir()) == sorted(NAMES)
