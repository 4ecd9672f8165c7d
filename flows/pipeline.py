"""Stages of ``dvc.yaml``: ``dvc repro`` runs ``python -P -m coevo.flows.pipeline STAGE`` at the root of a checkout.

    pipeline.yaml                  the recipe
    pipeline/tasks/tasks.json            tasks: the held-out panels, after their gate
    pipeline/warmstart/policy/           warmstart: the initial policy of training
    pipeline/coevolve/coevolve.json      coevolve: the run in the workspace, and the hashes of its last revision
    pipeline/evaluate/evaluation.json    evaluate: held-out success of that revision

Trained weights and the bank stay in the lineage of the run.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from coevo.configs.run_config import RunConfig
from coevo.configs.threads import with_threads
from coevo.envs.registry import make
from coevo.flows.configure import configure
from coevo.flows.console.interrupt import heeded
from coevo.flows.console.options import workspace_at
from coevo.flows.console.output import console
from coevo.flows.console.progress import shown
from coevo.flows.servers.servers import use_prefect
from coevo.lineage.atomic_files import write_atomically
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

RECIPE = "pipeline.yaml"
OUTPUTS = Path("pipeline")


def tasks(config: RunConfig) -> None:
    """Write the held-out panels."""
    from coevo.tasks.gates.environment_data import check_panel
    from coevo.tasks.gates.tables import check_table

    env = make(config.env)
    check_table(env, OUTPUTS / "quarantine")
    panels = [env.panel(name, config.evaluation.tasks) for name in panel_names(config)]
    for panel in panels:
        check_panel(panel, OUTPUTS / "quarantine")
    listed = {panel.name: {"hash": panel.hash, "tasks": [task.id for task in panel.tasks]} for panel in panels}
    write("tasks/tasks.json", {"env": env.name, "version": env.version, "panels": listed})


def warmstart(config: RunConfig) -> None:
    """Clone the policy, or take it from the workspace's cache."""
    from coevo.tasks.run.warmstart import warm_start

    with shown(console(), config.iterations) as progress:
        policy = warm_start(config, make(config.env), workspace().warmstarts, progress)
    shutil.rmtree(OUTPUTS / "warmstart/policy", ignore_errors=True)
    shutil.copytree(policy, OUTPUTS / "warmstart/policy")


def coevolve(config: RunConfig) -> None:
    """Run the loop from that policy, as a new run of the workspace."""
    opened = workspace()
    use_prefect(opened.root)
    from coevo.flows.start_run import WAITING, RunOptions, head_of, start_run
    from coevo.tasks.run.warmstart import adopt, identity

    with shown(console(), config.iterations) as progress:
        adopt(OUTPUTS / "warmstart/policy", opened.warmstarts / identity(config, make(config.env)), progress)
    ended = start_run(config, opened, how=RunOptions(alone=True))
    if ended.code == WAITING:
        raise CoevoError(f"{ended.run} waits for approval: coevo approve --list {ended.run}")
    head = head_of(opened, opened.existing(ended.run))
    assert head is not None  # start_run has refused a run that committed nothing
    made = {"artifacts": head.artifacts, "tables": head.tables}
    write("coevolve/coevolve.json", {"run": ended.run, "revision": head.revision, "iteration": head.iteration, **made})


def evaluate(config: RunConfig) -> None:
    """Play every panel with the last revision."""
    from coevo.flows.evaluation.evaluate_revision import evaluate_revision
    from coevo.flows.evaluation.panel_evaluation import EvaluationRequest
    from coevo.tasks.play.episode_metrics import outcome_metrics

    made = json.loads((OUTPUTS / "coevolve/coevolve.json").read_text(encoding="utf-8"))
    reference, opened = f"{made['run']}@{made['revision']}", workspace()
    played = {
        name: evaluate_revision(reference, EvaluationRequest(name), opened).episodes for name in panel_names(config)
    }
    write("evaluate/evaluation.json", {name: outcome_metrics(episodes, name) for name, episodes in played.items()})


def panel_names(config: RunConfig) -> list[str]:
    """Panels that the recipe names, without repetition."""
    return list(dict.fromkeys((*config.evaluation.panels, *config.evaluation.final_panels)))


def workspace() -> Workspace:
    """The default workspace of the ``coevo`` command."""
    named = os.environ.get("COEVO_WORKSPACE")
    return workspace_at(Path(named) if named else None)


def write(name: str, content: Mapping[str, object]) -> None:
    """Write one output as JSON."""
    (OUTPUTS / name).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(OUTPUTS / name, json.dumps(content, indent=1, sort_keys=True) + "\n")


STAGES = {stage.__name__: stage for stage in (tasks, warmstart, coevolve, evaluate)}

if __name__ == "__main__":
    with heeded():
        try:
            STAGES[sys.argv[1]](with_threads(configure(RECIPE)))
        except CoevoError as error:
            sys.exit(f"coevo: {error}")
