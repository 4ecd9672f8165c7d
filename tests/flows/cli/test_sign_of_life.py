"""Each command shows a sign of life before it loads a large library, and names each of its steps once."""

import json
import os
import re
import subprocess
import sys
import time

import pytest
from support.soak import mostly_soak

from coevo.flows.servers.daemon import down

COEVO = [sys.executable, "-X", "importtime", "-m", "coevo.flows"]
HEAVY = {"deepspeed", "dvc", "great_expectations", "lancedb", "mlflow", "peft", "prefect", "torch", "transformers"}
STARTS = re.compile(r"coevo( \w+)? starts \.\.\.")
IMPORT = "import time:"


def output_of(*arguments, **how):
    """Lines of a command with the seconds at which they came; imports are named as they end."""
    start = time.monotonic()
    merged = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([*COEVO, *arguments], **merged, **how) as process:
        try:
            for line in process.stdout:
                yield time.monotonic() - start, line.rstrip("\n")
        finally:
            process.kill()  # one whose lines are not wanted to the end


COMMANDS = [
    ("run", "homerules-grpo"),
    ("run", "homerules-grpo", "--dry-run", "--json"),
    ("resume", "first"),
    ("serve", "first"),
    ("package", "first"),
    ("promote", "household/1"),
    ("compare", "first@0", "other", "--evaluate"),
    ("branch", "first", "second"),
    ("report", "first"),
    ("log", "first"),
    ("runs", "--json"),
    ("recipes",),
    ("doctor",),
    ("play", "homerules"),
    ("envs",),
    ("ablate", "--list"),
    ("bank", "show", "first"),
    ("bank", "search", "first", "mug"),
    ("bank", "retrieval", "first"),
    ("bank", "why", "first", "lotus"),
    ("bank", "log", "first"),
    ("gc",),
    ("fsck",),
    ("tag", "first", "best"),
    ("approve", "first"),
    ("rollback", "first", "--to", "1"),
    ("schedule", "list"),
    ("ui",),
    ("worker",),
    ("push", "first", "remote"),
    ("pull", "remote"),
]
WHOLE = [
    ("run", "homerules-grpo", "evaluation.panels=[none]"),
    ("evaluate", "first"),
    ("envs", "check", "homerules"),
    ("ablate", "jerp-frozen-rules", "--dry-run"),
]
"""Commands with several steps, which are heard to the end."""
OFTEN = (
    "run homerules-grpo", "run homerules-grpo --dry-run --json", "resume first", "serve first", "runs --json",
    "recipes", "envs", "ablate --list", "bank search first mug", "fsck", "push first remote", "evaluate first",
)  # fmt: skip
"""Commands that ``make test-full`` tries: one of each kind."""


@pytest.fixture(scope="module")
def usual():
    """Seconds until the help is there."""
    return max(when for when, line in output_of("--help") if not line.startswith(IMPORT))


@pytest.fixture
def directory(copied, tmp_path):
    """Where a command runs, and its environment."""
    yield {"cwd": tmp_path, "env": {**os.environ, "COEVO_WORKSPACE": str(copied)}}
    down(copied)


@pytest.mark.full
@pytest.mark.parametrize("arguments", mostly_soak({" ".join(each): each for each in [*COMMANDS, *WHOLE]}, *OFTEN))
def test_a_command_shows_a_sign_of_life_before_it_loads_a_large_library(directory, usual, arguments):
    loaded = set()
    for when, line in output_of(*arguments, **directory):
        if not line.startswith(IMPORT):
            assert when < 2 + 2 * usual, line
            break
        loaded.add(line.rpartition("|")[2].strip().partition(".")[0])
    else:
        pytest.fail("no line")
    assert not loaded & HEAVY


@pytest.mark.full
@pytest.mark.parametrize("arguments", WHOLE, ids=" ".join)
def test_each_step_is_named_once(directory, arguments):
    said = [line for _, line in output_of(*arguments, **directory) if not line.startswith(IMPORT)]
    named = [line for line in said if line.endswith(" ...")]
    assert len(named) == len(set(named)) > 1
    assert "Traceback (most recent call last):" not in said


@pytest.mark.full
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_a_dry_run_names_its_steps_beside_its_report_and_apart_from_a_document(tmp_path, as_json):
    line = [sys.executable, "-m", "coevo.flows", "run", "homerules-grpo", "--dry-run", *(["--json"] if as_json else [])]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    said, other = (done.stderr, done.stdout) if as_json else (done.stdout, done.stderr)
    steps = [line for line in said.splitlines() if line.endswith(" ...") and not STARTS.fullmatch(line)]
    assert steps[0].startswith("loads ")
    assert [step for step in steps if not step.startswith("loads ")] == [
        "builds the environment ...",
        "plays the first turns with a random agent ...",
        "forecasts memory, disk and time ...",
    ]
    assert json.loads(other)["ready"] if as_json else other == ""
