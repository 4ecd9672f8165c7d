"""Equal seeds give equal states and equal bytes, in whatever order a process has its sets."""

import os
import subprocess

import pytest
from support.authors import quoting, quoting_writer
from support.completions import completions
from support.kept import whole
from support.player import CONFIG, environment
from support.runs import SMALL, command, states

from coevo.models.policy.context import CONTEXT_WORDS
from coevo.models.policy.policy import build, save
from coevo.records.draws import key

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

BRIEF = ("evaluation.tasks=8", "evaluation.final_panels=[]", "rollout.tasks=3", "rollout.group_size=3")
EVOLVING = ("homerules-coevo-rl", *(setting for setting in SMALL if not setting.startswith("warmstart")))
CASES = {
    "adapters": EVOLVING,
    "adapters-of-some-layers": (*EVOLVING, "policy.lora.target_modules=[v_proj, q_proj, up_proj]"),
    "critic": ("homerules-ppo", *BRIEF),
    "processes": (*EVOLVING, "update.deepspeed.processes=2"),
    "stage": (*EVOLVING, "update.deepspeed.processes=2", "update.deepspeed.zero_stage=3"),
    "author": (*EVOLVING, "AUTHOR"),
    "ahead": (*EVOLVING, "rollout.ahead=1", "update.loss.importance_cap=2.0"),
    "unfinished": ("homerules-context-lite", *BRIEF, "rollout.group_size=1", "rollout.turns=2"),
}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A small policy in a directory, for adapters."""
    place = tmp_path_factory.mktemp("given")
    save(build(CONFIG.policy, (*environment().vocabulary(), *CONTEXT_WORDS), key(2)), place)
    return place


@pytest.mark.parametrize("case", CASES)
def test_runs_with_adapters_are_equal_to_the_bit_with_every_hash_seed(workspace, given, case):
    with completions(quoting) as (url, asked):
        recipe, *settings = (quoting_writer(url) if part == "AUTHOR" else part for part in CASES[case])
        policy = ("policy.type=pretrained", f"policy.path={given}", "policy.lora={r: 4, alpha: 8}", "warmstart=null")
        for seed in ("1", "2"):
            line = ("run", recipe, "--name", f"{case}-{seed}", "iterations=2", "seed=5", *policy, *settings)
            # Of its own interpreter: the order of sets is that of the process that the others are forked from.
            done = subprocess.run(
                command(*line, workspace=workspace),
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
    first, second = (states(workspace, f"{case}-{seed}") for seed in ("1", "2"))
    assert first == second
    assert whole(workspace, f"{case}-1", 2) == whole(workspace, f"{case}-2", 2)
    assert "optimizer" in first[-1]["artifacts"]
    assert bool(asked) == (case == "author")
