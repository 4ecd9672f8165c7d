"""Evaluation of a served agent: the environment runs here, a packaged agent answers at a URL, one turn at a time."""

import json
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any
from urllib.error import HTTPError

from coevo.configs.proxies import reach
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.envs.registry import make
from coevo.flows.evaluation import Evaluation, EvaluationRequest, check_panel
from coevo.flows.history.revision_reference import reading
from coevo.lineage.workspace import Workspace
from coevo.memory.vendi_score import diversity
from coevo.records.demonstration import Answer, PastTurn
from coevo.records.episode import Completion
from coevo.tasks.iteration.held_out import play_panel
from coevo.tasks.play.attempt import OVERLONG, Running
from coevo.tasks.play.play import Playing
from coevo.tasks.play.retrieve import NOTHING
from coevo.tasks.publish.reporter import in_stage
from coevo.tasks.run.weight_digests import check_weights
from coevo.utilities.errors import CoevoError

REQUEST_TIMEOUT_S = 300.0
"""Timeout of a request, in seconds."""
MAX_REQUEST_ROWS = 64
"""Most rows per request, well below the limit of `coevo serve`."""


class ServedPlayer(Playing):
    """Player whose agent is behind a URL; a request has up to ``MAX_REQUEST_ROWS`` turns.

    Draws are the endpoint's own: those of an evaluation with ``seed``, whatever the keys of the attempts. Turns have no
    token ids; they have the ids of the entries in the agent's prompt.
    """

    def __init__(self, env: Environment[object], url: str, seed: int, max_turns: int) -> None:
        super().__init__(env, max_turns)
        self._url = f"{url.rstrip('/').removesuffix('/invocations')}/invocations"
        self._seed = seed
        self._opener = _opener(self._url)

    def play_turn(self, running: Sequence[Running]) -> None:
        """Play one turn of each attempt whose prompt is not too long for the agent.

        Raises:
            CoevoError: the endpoint does not answer, or refuses.
        """
        rows = [_row(live) for live in running]
        replies = [
            reply
            for at in range(0, len(rows), MAX_REQUEST_ROWS)
            for reply in self._ask(rows[at : at + MAX_REQUEST_ROWS])
        ]
        for live, reply in zip(running, replies, strict=True):
            # Packages of an earlier coevo, which bring their own code, do not report faults and ends.
            live.cut = reply["over"] if reply.get("fault") == OVERLONG else ""
        self._advance([(live, reply) for live, reply in zip(running, replies, strict=True) if not live.cut])

    def _advance(self, answered: Sequence[tuple[Running, dict[str, Any]]]) -> None:
        steps = self.step([live for live, _ in answered], [reply["action"] for _, reply in answered])
        for (live, reply), step in zip(answered, steps, strict=True):
            live.advance((), Completion((), (), reply["text"], True), _answer(reply), step)
            live.over = bool(reply.get("over"))
            if not live.lost:
                shown = tuple(entry["id"] for entry in reply["retrieved"])
                live.turns[-1] = replace(live.turns[-1], retrieved=shown)

    def _ask(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        body = json.dumps({"dataframe_records": rows, "params": {"seed": self._seed}}).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        try:
            with self._opener.open(request, timeout=REQUEST_TIMEOUT_S) as response:
                replies: list[dict[str, Any]] = json.load(response)["predictions"]
                return replies
        except HTTPError as error:
            raise CoevoError(f"{self._url} refuses: {_reason(error)}") from error
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise CoevoError(f"{self._url} does not answer ({reason}): start it with `coevo serve`") from error


def _opener(url: str) -> urllib.request.OpenerDirector:
    """Opener that uses the proxies of the environment, but not for this machine and the user's exceptions."""
    direct = reach(url, "the URL of the served agent", by_requests=False)
    return urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if direct else []))


def _answer(reply: Mapping[str, Any]) -> Answer:
    return Answer(reply["thought"], reply["action"], reply.get("fault", ""))


def _row(live: Running) -> dict[str, Any]:
    task = live.attempt.task
    return {
        "instruction": task.instruction,
        "observation": live.observation,
        "scope": task.scope,
        "kind": task.kind,
        "task": task.id,
        **({"guide": live.guide.text} if live.guide.text else {}),
        "history": [{name: getattr(turn, name) for name in PastTurn._fields} for turn in live.turns],
    }


def _reason(error: HTTPError) -> str:
    """Message of a refusal, on one line."""
    said = error.read().decode(errors="replace")
    with suppress(ValueError, KeyError, TypeError):
        said = json.loads(said)["message"]
    return " ".join(f"{error.code} {said}".split())[:300]


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
