"""Sessions of an OpenEnv server in worker processes: one WebSocket for each episode.

Messages are JSON, and what the server sends is checked. An action is a text for one field, or a call of the tool
``step`` with all fields of the server's schema.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from coevo.configs.proxies import opener_of, reach
from coevo.envs.adapters.episode_parts import OPEN, bounded, facts_or_refusal, shown
from coevo.envs.base import Step
from coevo.records.draws import Key, seed_of
from coevo.records.inert import encodable
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

MAX_MESSAGE_BYTES = 2**24
"""Most bytes of a message."""
CONNECT_TIMEOUT_S = 30.0
STEP = "step"
"""Tool that holds an action of several fields."""
OF_ACTIONS = ("VALIDATION_ERROR", "EXECUTION_ERROR", "INVALID_JSON")
"""Errors that an action causes: the policy reads them, and the episode continues."""
ActionReader = Callable[[str], Mapping[str, Any] | str]
"""Fields of an action from a text, or why it is none."""


class _Played(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)

    observation: dict[str, JsonValue]
    reward: float | None = None
    done: bool = False


class _Reply(BaseModel):
    type: str
    data: dict[str, JsonValue] = Field(default_factory=dict)


class _ActionSchema(BaseModel):
    properties: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    required: list[str] = Field(default_factory=list)


class _Schemas(BaseModel):
    action: _ActionSchema


class RefusedActionError(CoevoError):
    """An action that the server does not take."""


@dataclass(frozen=True)
class OpenEnvSimulator:
    """Source of sessions.

    Attributes:
        settings: ``url``, ``action``, ``observation``, ``steps`` and ``success`` of ``OpenEnvConfig``, and ``longest``
            of its simulator.
    """

    settings: Mapping[str, Any]

    def facts(self) -> Mapping[str, Any]:
        """Actions, by the server's schema."""
        return facts_or_refusal(lambda: guide_of(self._schema(), self.settings["action"]))

    def open(self, task: Task, key: Key) -> tuple["OpenEnvEpisode", str]:
        """Open a session, and reset it with the seed of the task or with its row."""
        episode = OpenEnvEpisode(self.settings, reader_of(self._schema(), self.settings["action"]))
        arguments = task.data.get("row") or {"seed": task.data["seed"]}
        return episode, episode.begin({"seed": seed_of(key) % 2**31, **arguments})

    def _schema(self) -> _ActionSchema:
        url = self.settings["url"].rstrip("/")
        try:
            with opener_of(url, "env.url").open(f"{url}/schema", timeout=CONNECT_TIMEOUT_S) as response:
                return _Schemas.model_validate_json(response.read(MAX_MESSAGE_BYTES)).action
        except ValidationError:
            raise CoevoError(f"env.url={url}: it sends no schema of actions: name a server of OpenEnv") from None
        except OSError as error:
            raise CoevoError(
                f"env.url={url}: it does not answer ({error}): start the server, or correct url"
            ) from error


class OpenEnvEpisode:
    """A session."""

    def __init__(self, settings: Mapping[str, Any], read: ActionReader) -> None:
        self._settings, self._read, self._turns, self._earned, self._last = settings, read, 0, 0.0, OPEN
        self._socket = _connected(settings["url"])

    def begin(self, arguments: Mapping[str, Any]) -> str:
        """Reset the session; return its first observation."""
        self._last = self.seen(self.asked("reset", arguments).observation) or OPEN
        return self._last

    def act(self, action: str) -> Step[None]:
        """Send an action; the policy reads why the server refused one."""
        self._turns += 1
        fields, cut = self._read(encodable(action)), self._turns == self._settings["steps"]
        if isinstance(fields, str):
            return self._refused(fields, cut)
        try:
            played = self.asked(STEP, fields)
        except RefusedActionError as error:
            return self._refused(str(error), cut)
        self._last, reward = self.seen(played.observation) or OPEN, played.reward or 0.0
        self._earned += reward
        done, success = played.done or cut, played.done and self._earned >= self._settings["success"]
        feedback = f"reward {reward:g}" + "; the episode is over" * played.done
        return Step(None, self._last, feedback, reward, done, success, truncated=cut and not played.done)

    def close(self) -> None:
        """End the session."""
        from websockets.exceptions import WebSocketException

        with suppress(WebSocketException, OSError):
            self._socket.send(json.dumps({"type": "close"}))
        self._socket.close()

    def asked(self, kind: str, data: Mapping[str, Any]) -> _Played:
        """Answer of the server to a message.

        Raises:
            RefusedActionError: it does not take this action.
            CoevoError: it answers with another error, or with nothing that can be read.
        """
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):  # its last message says why
            self._socket.send(json.dumps({"type": kind, "data": data}))
        try:
            reply = _Reply.model_validate_json(self._socket.recv())
            if reply.type == "observation":
                return _Played.model_validate(reply.data)
        except ConnectionClosed as error:
            raise CoevoError(f"env.url: the server ended the session ({error})") from error
        except ValidationError as error:
            raise CoevoError(f"env.url: the server sends what is no observation: {error.errors()[0]['msg']}") from None
        said = bounded(f"{reply.data.get('message', reply.type)}", 300)
        if reply.type == "error" and reply.data.get("code") in OF_ACTIONS and kind == STEP:
            raise RefusedActionError(f"error: {said}")
        raise CoevoError(f"env.url: the server refuses {kind}: {said}: correct rows, or let it open more sessions")

    def seen(self, observation: Mapping[str, Any]) -> str:
        """An observation in words: the field of the settings, the only one, or all that are not empty."""
        name = self._settings["observation"]
        if name is not None and name not in observation:
            raise CoevoError(f"env.observation={name}: there is no such field; there are {', '.join(observation)}")
        if name is not None or len(observation) == 1:
            return bounded(shown(observation[name or next(iter(observation))]), self._settings["longest"])
        lines = (f"{field}: {shown(value)}" for field, value in observation.items() if value not in (None, "", [], {}))
        return bounded("\n".join(lines), self._settings["longest"])

    def _refused(self, why: str, cut: bool) -> Step[None]:
        return Step(None, self._last, bounded(why, self._settings["longest"]), 0.0, cut, False, False, truncated=cut)


def guide_of(schema: _ActionSchema, field: str | None) -> Mapping[str, Any]:
    """Facts about actions: any text, one of a few texts, or a call of ``step``. Raises ``CoevoError``."""
    name = _text_field(schema, field)
    if name is None:
        parameters = {"type": "object", "properties": _fields(schema), "required": schema.required}
        tool = {"name": STEP, "description": "Act in the environment.", "parameters": parameters}
        return {"guide": f"An action is a call of {STEP}.", "tools": [tool]}
    choices, about = schema.properties[name].get("enum"), schema.properties[name].get("description")
    if isinstance(choices, list) and choices and all(isinstance(each, str) for each in choices):
        return {"guide": f"An action is one of these: {', '.join(map(str, choices))}.", "verbs": choices}
    return {"guide": f"An action is a text: {about or name}.", "answer": "block"}


def reader_of(schema: _ActionSchema, field: str | None) -> ActionReader:
    """Reader of actions. Raises ``CoevoError``."""
    name = _text_field(schema, field)
    return _call if name is None else lambda text: {name: text}


def _call(text: str) -> Mapping[str, Any] | str:
    try:
        call = json.loads(text)
        arguments = call["arguments"] if call["name"] == STEP else None
    except (ValueError, RecursionError, TypeError, KeyError):
        arguments = None
    return arguments if isinstance(arguments, dict) else f"this is no call of {STEP}"


def _text_field(schema: _ActionSchema, field: str | None) -> str | None:
    """Field that a text fills; None where an action has several, or none that is a text."""
    fields = _fields(schema)
    if field is not None and field not in fields:
        raise CoevoError(f"env.action={field}: actions have no such field; they have {', '.join(fields)}")
    if field is not None:
        return field
    needed = schema.required if schema.required else list(fields)
    return needed[0] if len(needed) == 1 and fields.get(needed[0], {}).get("type") == "string" else None


def _fields(schema: _ActionSchema) -> dict[str, dict[str, JsonValue]]:
    return {name: about for name, about in schema.properties.items() if name != "metadata"}


def _connected(url: str) -> Any:
    """WebSocket of a server. Raises ``CoevoError``."""
    try:
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect
    except ImportError:
        raise CoevoError("websockets is not installed: pip install 'coevo[openenv]'") from None
    parts = urlsplit(url)
    address = f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}{parts.path.rstrip('/')}/ws"
    try:
        return connect(
            address,
            max_size=MAX_MESSAGE_BYTES,
            open_timeout=CONNECT_TIMEOUT_S,
            proxy=None if reach(url, "env.url", by_requests=False) else True,
        )
    except (OSError, WebSocketException) as error:
        raise CoevoError(
            f"env.url={url}: no session can be opened ({error}): start the server, or correct url"
        ) from error
