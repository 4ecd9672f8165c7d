"""Rollouts of a served agent: the environment runs here, a packaged agent answers at a URL, one turn at a time."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request

from pydantic import BaseModel, ValidationError

from coevo.configs.proxies import opener_of
from coevo.envs.base import Environment
from coevo.records.demonstration import Answer, PastTurn
from coevo.records.episode import Completion
from coevo.records.inert import visible
from coevo.tasks.play.play import OVERLONG, Playing, Running
from coevo.utilities.errors import CoevoError

REQUEST_TIMEOUT_S = 300.0
"""Timeout of a request, in seconds."""
MAX_REQUEST_ROWS = 64
"""Most rows per request, well below the limit of `coevo serve`."""
MAX_SERVED_BYTES = 2**26
"""Most bytes of a response."""
MAX_REFUSAL_BYTES = 2**16
"""Most bytes that are read of a refusal."""
ELSEWHERE = (301, 302, 303, 307, 308, 404, 405)
"""States of a response from a server without turns of agents; redirections are not followed."""


class _ServedEntry(BaseModel):
    id: str


class ServedReply(BaseModel):
    """The part of an agent's answer that is read, see ``coevo.tasks.package.signature``; other fields are ignored.

    Packages of an earlier coevo, which bring their own code, do not report faults and ends.
    """

    text: str
    thought: str
    action: str
    retrieved: list[_ServedEntry]
    fault: str = ""
    over: str = ""


class _ServedReplies(BaseModel):
    predictions: list[ServedReply]


class ServedWorker(Playing):
    """RolloutWorker whose agent is behind a URL; a request has up to ``MAX_REQUEST_ROWS`` turns.

    Draws are the endpoint's own: those of an evaluation with ``seed``, whatever the keys of the attempts. Turns have no
    token ids; they have the ids of the entries in the agent's prompt.
    """

    def __init__(self, env: Environment[object], url: str, seed: int, max_turns: int) -> None:
        super().__init__(env, max_turns)
        self._url = f"{url.rstrip('/').removesuffix('/invocations')}/invocations"
        self._seed = seed
        self._opener = opener_of(self._url, "the URL of the served agent")

    def play_turn(self, running: Sequence[Running]) -> None:
        """Play one turn of each attempt whose prompt is not too long for the agent.

        Raises:
            CoevoError: the endpoint does not answer, refuses, or is no `coevo serve`.
        """
        rows = [_row(live) for live in running]
        replies = [
            reply
            for at in range(0, len(rows), MAX_REQUEST_ROWS)
            for reply in self._ask(rows[at : at + MAX_REQUEST_ROWS])
        ]
        for live, reply in zip(running, replies, strict=True):
            live.cut = reply["over"] if reply["fault"] == OVERLONG else ""
        self._advance([(live, reply) for live, reply in zip(running, replies, strict=True) if not live.cut])

    def _advance(self, answered: Sequence[tuple[Running, dict[str, Any]]]) -> None:
        steps = self.step([live for live, _ in answered], [reply["action"] for _, reply in answered])
        for (live, reply), step in zip(answered, steps, strict=True):
            live.advance((), Completion((), (), reply["text"], True), _answer(reply), step)
            live.over = bool(reply["over"])
            if not live.lost:
                shown = tuple(entry["id"] for entry in reply["retrieved"])
                live.turns[-1] = replace(live.turns[-1], retrieved=shown)

    def _ask(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        body = json.dumps({"dataframe_records": rows, "params": {"seed": self._seed}}).encode()
        request = Request(self._url, body, {"Content-Type": "application/json"})
        try:
            with self._opener.open(request, timeout=REQUEST_TIMEOUT_S) as response:
                content: bytes = response.read(MAX_SERVED_BYTES + 1)
        except HTTPError as error:
            if error.code in ELSEWHERE:
                raise self._wrong(_reason(error)) from error
            raise CoevoError(f"{self._url} refuses: {_reason(error)}") from error
        except (OSError, HTTPException) as error:
            reason = _line(str(getattr(error, "reason", error)))
            raise CoevoError(f"{self._url} does not answer ({reason}): start it with `coevo serve`") from error
        return self._read(content, len(rows))

    def _read(self, content: bytes, count: int) -> list[dict[str, Any]]:
        """Replies in a response, one for each row that was asked."""
        if len(content) > MAX_SERVED_BYTES:
            raise self._wrong(f"its response has more than {MAX_SERVED_BYTES} bytes")
        try:
            replies = _ServedReplies.model_validate_json(content).predictions
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(map(str, problem["loc"])) or "response"
            raise self._wrong(f"{place}: {problem['msg']}") from None
        if len(replies) != count:
            raise self._wrong(f"{len(replies)} answers to {count} questions")
        return [reply.model_dump() for reply in replies]

    def _wrong(self, why: str) -> CoevoError:
        return CoevoError(
            f"{self._url} is no `coevo serve` ({_line(why)}): correct the URL; for an API add policy.model=NAME"
        )


def _answer(reply: Mapping[str, Any]) -> Answer:
    return Answer(reply["thought"], reply["action"], reply["fault"])


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
    said = ""
    with suppress(OSError, HTTPException):
        said = error.read(MAX_REFUSAL_BYTES).decode(errors="replace")
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        said = json.loads(said)["message"]
    return _line(f"{error.code} {said}")


def _line(said: str) -> str:
    """Text of a server on one line."""
    return " ".join(visible(said).split())[:300]
