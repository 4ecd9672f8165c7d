"""Equal seeds give equal states and equal bytes, in whatever order a process has its sets."""

import json
import os
import subprocess
import sys

import pytest
from support.completions import completions
from support.kept import whole
from support.runs import ROOT, SMALL, states
from support.worker import CONFIG, environment
from support.writer_models import quoting, quoting_writer

from coevo.models.policy.context import CONTEXT_WORDS
from coevo.models.policy.policy import build, save
from coevo.records.draws import key

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

SEEDS = ("1", "2")
IN_ORDER = """
import json, sys
from multiprocessing import get_context
sys.path[:0] = [".", "tests"]
import tests.support.preloaded
from support import spare

def command(line):
    spare.prepare()
    from coevo.flows.cli.app import main
    main(line)

def end(line):
    process = get_context("fork").Process(target=command, args=(line,))
    process.start()
    process.join()
    return process.exitcode

sys.exit(json.dumps({line[3]: code for line in json.loads(sys.argv[1]) if (code := end(line))}).strip("{}") or 0)
"""
"""Commands one after another, forked from one process: the order of sets is that of the process that imports."""
BRIEF = ("evaluation.tasks=8", "evaluation.final_panels=[]", "rollout.tasks=3", "rollout.group_size=3")
EVOLVING = ("homerules-coevo-rl", *(setting for setting in SMALL if not setting.startswith("warmstart")))
CASES = {
    "writer_model": (*EVOLVING, "AUTHOR"),
    "ahead": (*EVOLVING, "rollout.ahead=1", "update.loss.importance_cap=2.0"),
    "adapters-of-some-layers": (*EVOLVING, "policy.lora.target_modules=[v_proj, q_proj, up_proj]"),
    "stage": (*EVOLVING, "update.deepspeed.processes=2", "update.deepspeed.zero_stage=3"),
    "adapters": EVOLVING,
    "critic": ("homerules-ppo", *BRIEF),
    "processes": (*EVOLVING, "update.deepspeed.processes=2"),
    "unfinished": ("homerules-context-lite", *BRIEF, "rollout.group_size=1", "rollout.turns=2"),
}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A small policy in a directory, for adapters."""
    directory = tmp_path_factory.mktemp("given")
    save(build(CONFIG.policy, (*environment().vocabulary, *CONTEXT_WORDS), key(2)), directory)
    return directory


def run_each(workspace, given):
    """Play both runs of every case, those of the two seeds side by side; the number of questions to the writer."""
    with completions(quoting) as (url, asked):
        running = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    IN_ORDER,
                    json.dumps([line(case, seed, url, given, workspace) for case in CASES]),
                ],
                cwd=ROOT,
                env={**os.environ, "PYTHONHASHSEED": seed},
                stderr=subprocess.PIPE,
                text=True,
            )
            for seed in SEEDS
        ]
        for process in running:
            said = process.communicate(timeout=3000)[1]
            assert process.returncode == 0, said
    return len(asked)


def line(case, seed, url, given, workspace):
    recipe, *settings = (quoting_writer(url) if part == "AUTHOR" else part for part in CASES[case])
    policy = ("policy.type=pretrained", f"policy.path={given}", "policy.lora={r: 4, alpha: 8}", "warmstart=null")
    name = ("--name", f"{case}-{seed}", "--workspace", str(workspace))
    return ["run", recipe, *name, "iterations=2", "seed=5", *policy, *settings]


def test_runs_with_adapters_are_equal_to_the_bit_with_every_hash_seed(workspace, given):
    assert run_each(workspace, given) > 0
    for case in CASES:
        first, second = (states(workspace, f"{case}-{seed}") for seed in SEEDS)
        assert first == second
        assert whole(workspace, f"{case}-1", 2) == whole(workspace, f"{case}-2", 2)
        assert "optimizer" in first[-1]["artifacts"]
