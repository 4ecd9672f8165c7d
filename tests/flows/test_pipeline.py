"""``dvc repro`` in a copy of the project: it runs what has changed, and nothing else."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRITER_MODEL = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
RECIPE = """
defaults: [recipes/homerules-coevo-rl]
seed: 3
iterations: 2
env: {}
policy: {}
context: {}
warmstart: {steps: 30, episodes: 8, drills: 6, probe_every: 30, probe_tasks: 16}
evaluation: {tasks: 16}
rollout: {tasks: 4, group_size: 4}
bank: {admission: {replays: 2, delta: -1.0}}
"""


def in_copy(copy, *command):
    """Run a command at the root of the copy; what it printed."""
    here = str(Path(sys.executable).parent)
    env = {name: value for name, value in os.environ.items() if name not in ("COEVO_WORKSPACE", "PYTHONPATH")}
    env |= {"PATH": here + os.pathsep + os.environ["PATH"], "DVC_SITE_CACHE_DIR": str(copy.parent / "site")}
    done = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def staged(copy):
    """Names of the stages in the order in which ``dvc repro --dry`` lists them."""
    return re.findall(r"Running stage '(\w+)'", in_copy(copy, "dvc", "repro", "--dry"))


def repro(copy):
    """Names of the stages that ``dvc repro`` ran."""
    return re.findall(r"Running stage '(\w+)'", in_copy(copy, "dvc", "repro"))


def stale(copy):
    """Names of the stages that have changed, as far as can be told without running one."""
    return set(json.loads(in_copy(copy, "dvc", "status", "--json")))


def reached(copy):
    """The last run of the pipeline."""
    return json.loads((copy / "pipeline/coevolve/coevolve.json").read_text())


def change(copy, old, new):
    """Edit the recipe of the copy."""
    path = copy / "pipeline.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture(scope="module")
def copy(tmp_path_factory, prefect_url):
    """The project as a git repository of its own, with a recipe that takes seconds."""
    directory = tmp_path_factory.mktemp("project") / "coevo"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, directory / name, follow_symlinks=False)
    (directory / "pipeline.yaml").write_text(RECIPE)
    for command in (["init", "--quiet"], ["add", "--all"], [*WRITER_MODEL, "commit", "--quiet", "--message", "copy"]):
        subprocess.run(["git", *command], cwd=directory, check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_API_URL", prefect_url)
        yield directory


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_stage_runs_when_what_it_depends_on_has_changed(copy):
    stages = ["tasks", "warmstart", "coevolve", "evaluate"]
    assert staged(copy) == stages
    assert not in_copy(copy, "git", "status", "--porcelain")
    assert repro(copy) == stages
    assert not repro(copy)
    assert reached(copy)["run"] == "pipeline-1"
    manifest = json.loads((copy / "workspace/runs/pipeline-1/lineage/manifest.json").read_text())
    evaluation = json.loads((copy / "pipeline/evaluate/evaluation.json").read_text())
    assert set(evaluation) == {"seen-houses", "no-bank", "other-facts", "other-houses"}
    assert "seen-houses" in in_copy(copy, "dvc", "metrics", "show")
    for figures in evaluation.values():
        assert figures.items() <= manifest["state"]["metrics"].items()

    change(copy, "evaluation: {tasks: 16}", "evaluation: {tasks: 12}")
    assert stale(copy) == {"tasks", "coevolve"}
    change(copy, "evaluation: {tasks: 12}", "evaluation: {tasks: 16}")
    change(copy, "iterations: 2", "iterations: 1")
    assert stale(copy) == {"coevolve"}
    assert repro(copy) == ["coevolve", "evaluate"]
    assert (reached(copy)["run"], reached(copy)["iteration"]) == ("pipeline-2", 1)
    assert not in_copy(copy, "git", "status", "--porcelain", "pipeline", "workspace")
    change(copy, "steps: 30", "steps: 5")
    assert stale(copy) == {"warmstart", "coevolve"}
