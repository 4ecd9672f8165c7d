"""Evaluation of a served agent: a panel is played here, and a URL answers with the actions."""

from contextlib import closing
from dataclasses import replace

from coevo.configs.run_config import RunConfig
from coevo.envs.registry import make
from coevo.flows.evaluation import Evaluation, EvaluationRequest, check_panel
from coevo.flows.history.revision_reference import reading
from coevo.lineage.workspace import Workspace
from coevo.memory.vendi_score import diversity
from coevo.tasks.iteration.held_out import play_panel
from coevo.tasks.play.endpoint_agent import ServedPlayer
from coevo.tasks.play.retrieve import NOTHING
from coevo.tasks.publish.reporter import in_stage
from coevo.tasks.run.weight_digests import check_weights
from coevo.utilities.errors import CoevoError


def evaluate_endpoint(url: str, reference: str, request: EvaluationRequest, workspace: Workspace) -> Evaluation:
    """``coevo evaluate`` with the agent behind a URL instead of the run's policy and bank.

    Raises:
        CoevoError: the run or panel does not exist, the request has another bank or several attempts, or the endpoint
            does not answer.
    """
    if request.bank != "own" or request.discovery:
        what = f"--bank {request.bank}" if request.bank != "own" else f"--discovery {request.discovery}"
        raise CoevoError(f"{what}: an agent that is served has its own bank, and keeps it; leave out one of the two")
    with reading(reference, workspace) as opened:
        config, manifest = opened.config, opened.manifest
        workspace.trust.demand(opened.paths.name, config)
        check_weights(manifest, config, workspace.root, opened.name)
    panel, tasks = request.panel or config.evaluation.panels[0], request.tasks or config.evaluation.tasks
    with in_stage(f"r{manifest.revision} evaluate"):
        found = play_endpoint(url, config, manifest.iteration, panel, tasks)
    return replace(found, vendi=diversity(found.episodes, config.evaluation.encoder))


def play_endpoint(url: str, config: RunConfig, iteration: int, panel: str, tasks: int) -> Evaluation:
    """Play a held-out panel with the agent behind a URL; outcomes equal those in the process of ``coevo evaluate``.

    Args:
        url: URL of ``coevo serve``.
        config: configuration of the agent's run: its environment, which runs here, turn limit and seed of the draws.
        iteration: iteration of the environment's world, see ``Environment.at``.
        panel: a panel that is played with the agent's own bank.
        tasks: number of its tasks.

    Raises:
        CoevoError: the panel does not exist or has entries of its own, or the endpoint does not answer.
    """
    environment, seed = make(config.env), config.seed
    check_panel(environment, panel)
    if environment.panel_bank(panel) is not None:
        raise CoevoError(f"{panel}: is not played with the agent's own bank, and a served agent has no other one")
    played = environment.at(iteration).panel(panel, tasks)
    with closing(environment):
        player = ServedPlayer(environment, url, seed, config.rollout.max_turns)
        return Evaluation(played, play_panel(player, played, NOTHING, seed, 0), {})
