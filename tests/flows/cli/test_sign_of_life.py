"""Each command shows a sign of life before it loads a large library, and names each of its steps once."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from coevo.flows.servers.daemon import down

COEVO = [sys.executable, "-X", "importtime", "-m", "coevo.flows"]
HEAVY = {"deepspeed", "dvc", "great_expectations", "lancedb", "mlflow", "peft", "prefect", "torch", "transformers"}
STARTS = re.compile(r"coevo( \w+)? starts \.\.\.")
IMPORT = "import time:"


def output_of(*arguments, cwd, **how):
    """Lines of a command with the seconds at which they came; imports are named as they end."""
    start = time.monotonic()
    merged = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([*COEVO, *arguments], cwd=cwd, **merged, **how) as process:
        return [(time.monotonic() - start, line.rstrip("\n")) for line in process.stdout]


COMMANDS = [
    ("run", "homerules-grpo", "--dry-run"),
    ("run", "homerules-grpo", "--dry-run", "--json"),
    ("run", "homerules-grpo", "evaluation.panels=[none]"),
    ("resume", "first"),
    ("evaluate", "first"),
    ("serve", "first"),
    ("package", "first"),
    ("promote", "household/1"),
    ("compare", "first", "other"),
    ("compare", "first@0", "other", "--evaluate"),
    ("branch", "first", "second"),
    ("report", "first"),
    ("log", "first"),
    ("runs", "--json"),
    ("recipes",),
    ("doctor",),
    ("play", "homerules"),
    ("envs", "check", "homerules"),
    ("envs",),
    ("ablate", "--list"),
    ("ablate", "jerp-frozen-rules", "--dry-run"),
    ("bank", "show", "first"),
    ("bank", "search", "first", "mug"),
    ("bank", "retrieval", "first"),
    ("gc",),
    ("fsck",),
    ("tag", "first", "best"),
    ("rollback", "first", "--to", "1"),
    ("schedule", "list"),
    ("pull", "remote"),
]


@pytest.fixture(scope="module")
def usual():
    """Seconds until the help is there."""
    return max(when for when, line in output_of("--help", cwd=None) if not line.startswith(IMPORT))


@pytest.mark.full
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_shows_a_sign_of_life_before_it_loads_a_large_library(copied, tmp_path, usual, arguments):
    lines = output_of(*arguments, cwd=tmp_path, env={**os.environ, "COEVO_WORKSPACE": str(copied)})
    down(copied)
    first = next(number for number, (_, line) in enumerate(lines) if not line.startswith(IMPORT))
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for _, line in lines[:first]}
    assert not loaded & HEAVY
    assert lines[first][0] < 2 + 2 * usual, lines[first]
    said = [line for _, line in lines if not line.startswith(IMPORT)]
    named = [line for line in said if line.endswith(" ...")]
    assert len(named) == len(set(named))
    assert "Traceback (most recent call last):" not in said


@pytest.mark.full
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_a_dry_run_names_its_steps_beside_its_report_and_apart_from_a_document(tmp_path, as_json):
    line = [sys.executable, "-m", "coevo.flows", "run", "homerules-grpo", "--dry-run", *(["--json"] if as_json else [])]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    said, other = (done.stderr, done.stdout) if as_json else (done.stdout, done.stderr)
    steps = [line for line in said.splitlines() if line.endswith(" ...") and not STARTS.fullmatch(line)]
    assert steps[0].startswith("loads ")
    assert steps[-3:] == [
        "builds the environment ...",
        "plays the first turns with a random agent ...",
        "forecasts memory, disk and time ...",
    ]
    assert json.loads(other)["ready"] if as_json else other == ""
