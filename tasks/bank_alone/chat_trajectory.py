"""Trajectories of chat messages: checked, kept as files until no revision needs them, and as episodes for writers."""

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from coevo.lineage.atomic_files import write_atomically
from coevo.memory.validate import shortened
from coevo.records.episode import Completion, Episode, Turn
from coevo.records.inert import encodable
from coevo.records.task import Task
from coevo.tasks.bank_alone.new_lesson import ScopeName, scope_text
from coevo.utilities.errors import CoevoError

MAX_MESSAGES = 1000
"""Most messages of a trajectory."""
MAX_CHARS = 1_000_000
"""Most characters of all messages of a trajectory, as JSON."""
STAGE = "alone"
"""Stage in the ids of trajectories."""


@dataclass(frozen=True)
class ChatTrajectory:
    """One attempt at a task, as the messages between an agent and its model.

    Attributes:
        messages: in order, as OpenAI's chat completions have them: ``role``, ``content``, ``tool_calls``. Of content
            that is no text only its kind is kept, and of a message's other fields nothing.
        reward: of the whole attempt.
        success: whether it succeeded.
        scope: as of lessons, which are written into it.
        shown: ids of the entries that the agent was shown.
        task: task in words; by default the first message of the user. Attempts at one task are compared.
        id: given when it is recorded.
    """

    messages: Sequence[Mapping[str, Any]]
    reward: float
    success: bool
    scope: ScopeName = ""
    shown: Sequence[str] = ()
    task: str = ""
    id: str = field(default="", compare=False)


class _Sent(BaseModel):
    """A part of a message; fields that are not named are dropped."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _FunctionCall(_Sent):
    name: str = Field(min_length=1, max_length=200)
    arguments: str


class _ToolCall(_Sent):
    id: str | None = None
    type: Literal["function"] = "function"
    function: _FunctionCall


class _ContentPart(_Sent):
    type: str = Field(min_length=1, max_length=100)
    text: str | None = None


class _ChatMessage(_Sent):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_ContentPart] | None = None
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | None = None

    def plain(self) -> dict[str, Any]:
        """The message with its content as text."""
        content = self.content
        if isinstance(content, list):
            content = "\n".join(part.text if part.text is not None else f"[{part.type}]" for part in content)
        return {**self.model_dump(exclude={"content"}, exclude_none=True), "content": content or ""}


_MESSAGES = TypeAdapter(list[_ChatMessage])


def checked_trajectory(trajectory: object, where: str) -> ChatTrajectory:
    """The same attempt with checked fields: messages as plain JSON, and the scope as a text.

    Raises:
        CoevoError: a field is not acceptable; names the field and what would be right.
    """
    if not isinstance(trajectory, ChatTrajectory):
        raise CoevoError(f"{where}: {shortened(trajectory)} is no trajectory: write a ChatTrajectory")
    reward, success, shown = trajectory.reward, trajectory.success, trajectory.shown
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not isfinite(reward):
        raise CoevoError(f"{where}: reward = {shortened(reward)}: write a finite number")
    if not isinstance(success, bool):
        raise CoevoError(f"{where}: success = {shortened(success)}: write True or False")
    if isinstance(shown, str) or not isinstance(shown, Sequence) or not all(isinstance(name, str) for name in shown):
        raise CoevoError(f"{where}: shown = {shortened(shown)}: write a list of the ids of entries")
    messages = _messages(trajectory.messages, where)
    task = trajectory.task if isinstance(trajectory.task, str) else None
    if task is None or len(task) > MAX_CHARS:
        raise CoevoError(f"{where}: task = {shortened(trajectory.task)}: write the task in words")
    task = encodable(task) or next((each["content"] for each in messages if each["role"] == "user"), "")
    if not task.strip():
        raise CoevoError(f"{where}: has no task: name it in task, or begin with a message of the user")
    scope = scope_text(trajectory.scope)
    return ChatTrajectory(messages, float(reward), success, scope, tuple(dict.fromkeys(shown)), task)


def _messages(given: object, where: str) -> list[dict[str, Any]]:
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise CoevoError(f"{where}: messages = {shortened(given)}: write a list of messages with role and content")
    if len(given) > MAX_MESSAGES:
        raise CoevoError(f"{where}: has {len(given)} messages: shorten it to {MAX_MESSAGES}")
    try:
        found = [message.plain() for message in _MESSAGES.validate_python(list(given))]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise CoevoError(f"{where}: messages.{shortened(place)[1:-1]}: {first['msg']}") from None
    text = json.dumps(found)  # ASCII: halves of surrogate pairs have no other form
    if len(text) > MAX_CHARS:
        raise CoevoError(f"{where}: its messages have {len(text)} characters as JSON: shorten them to {MAX_CHARS}")
    if not any(message["role"] == "assistant" for message in found):
        raise CoevoError(f"{where}: no message is the agent's: write what it said with the role assistant")
    plain: list[dict[str, Any]] = json.loads(encodable(json.dumps(found, ensure_ascii=False)))
    return plain


class TrajectoryFiles:
    """Trajectories in a folder, one file per revision that recorded some.

    Args:
        folder: created when it is needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._scopes: dict[str, str] = {}

    def write(self, revision: int, trajectories: Iterable[ChatTrajectory]) -> list[str]:
        """Keep trajectories that a revision in the making records; return their ids."""
        named = [
            replace(each, id=f"{revision}/{STAGE}/{_task(each).id}/{number}")
            for number, each in enumerate(trajectories)
        ]
        self._folder.mkdir(exist_ok=True)
        write_atomically(self._file(revision), json.dumps([asdict(each) for each in named], ensure_ascii=False))
        return [each.id for each in named]

    def read(self, names: Sequence[str]) -> list[ChatTrajectory]:
        """The trajectories with these ids, in their order.

        Raises:
            CoevoError: one is missing or damaged.
        """
        found = {each.id: each for number in dict.fromkeys(map(_revision_of, names)) for each in self._of(number)}
        self._require(names, found)
        return [found[name] for name in names]

    def scopes(self, names: Sequence[str]) -> list[str]:
        """Scopes of the trajectories with these ids, in their order; those of the last call are not read again.

        Raises:
            CoevoError: one is missing or damaged.
        """
        found = {name: self._scopes[name] for name in names if name in self._scopes}
        for number in dict.fromkeys(_revision_of(name) for name in names if name not in found):
            found |= {each.id: str(each.scope) for each in self._of(number)}
        self._require(names, found)
        self._scopes = {name: found[name] for name in names}
        return list(self._scopes.values())

    def remove_except(self, names: Iterable[str]) -> None:
        """Remove all files but those with one of these."""
        kept = {self._file(_revision_of(name)) for name in names}
        for path in set(self._folder.glob("*.json")) - kept:
            path.unlink(missing_ok=True)

    def _require(self, names: Iterable[str], found: Container[str]) -> None:
        for name in names:
            if name not in found:
                raise CoevoError(f"{self._folder}: trajectory {name} is missing: copy the bank back from a backup")

    def _of(self, revision: int) -> Iterator[ChatTrajectory]:
        path = self._file(revision)
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
            for number, row in enumerate(rows):
                name = row.pop("id")
                yield replace(checked_trajectory(ChatTrajectory(**row), f"{path} {number}"), id=name)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            raise CoevoError(f"{path}: cannot be read: copy the bank back from a backup") from None

    def _file(self, revision: int) -> Path:
        return self._folder / f"{revision:08d}.json"


def _revision_of(name: str) -> int:
    return int(name.partition("/")[0])


def episode_of(trajectory: ChatTrajectory) -> Episode:
    """A recorded trajectory as an episode that writers read: one turn per message of the agent.

    What came between two of these messages is the observation of the second, and what came last is the feedback on the
    last action. Messages of the system are left out: they hold the agent's prompt, and maybe lessons.
    """
    turns: list[Turn] = []
    heard: list[str] = []
    said = [message for message in trajectory.messages if message["role"] not in ("system", "developer")]
    if said[0]["role"] == "user" and said[0]["content"] == trajectory.task:
        del said[0]
    for message in said:
        if message["role"] == "assistant":
            turns.append(_turn("\n".join(heard), _action(message)))
            heard = []
        else:
            heard.append(message["content"])
    turns[-1] = replace(turns[-1], feedback="\n".join(heard), reward=trajectory.reward)
    number = int(trajectory.id.rpartition("/")[2])
    revision, success = _revision_of(trajectory.id), trajectory.success
    return Episode(trajectory.id, _task(trajectory), revision, number, tuple(turns), success, truncated=False)


def _turn(observation: str, action: str) -> Turn:
    completion = Completion((), (), action, finished=True)
    return Turn(observation, (), completion, action, feedback="", reward=0.0, valid=True)


def _action(message: Mapping[str, Any]) -> str:
    calls = (call["function"] for call in message.get("tool_calls", ()))
    lines = [message["content"], *(f"{call['name']}({call['arguments']})" for call in calls)]
    return "\n".join(line for line in lines if line)


def _task(trajectory: ChatTrajectory) -> Task:
    return Task("messages", "", trajectory.task, str(trajectory.scope), "train", {})
