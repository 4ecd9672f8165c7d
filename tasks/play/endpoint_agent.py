"""Playing through an endpoint: the environment runs here, a packaged agent answers at a URL, one turn at a time."""

import json
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

from coevo.configs.proxies import check_proxies, is_here
from coevo.envs.base import Environment
from coevo.records.demonstration import Answer, PastTurn
from coevo.records.episode import Completion
from coevo.tasks.play.attempt import OVERLONG, Running
from coevo.tasks.play.play import Playing
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
    """Opener that uses the proxies of the environment, but for this machine, whose ports they cannot reach."""
    if is_here(urlsplit(url).hostname or ""):
        return urllib.request.build_opener(urllib.request.ProxyHandler({}))
    check_proxies()
    return urllib.request.build_opener()


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
