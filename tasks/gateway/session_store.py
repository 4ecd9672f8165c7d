"""Sessions that ended, one line of JSON each, on the disk before anybody hears of it.

<directory>/training.jsonl    sessions of mode training, with every token
<directory>/evaluation.jsonl  sessions of mode ``evaluation``, which teach nothing
<directory>/opened            names and modes of opened sessions; one that did not end is lost at the next start
<directory>/lock              held by the one gateway that writes

A line is appended and synced as a whole. One without its end was cut off by the death of its process, before its
client had an answer, and is removed at the next start.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from sys import getsizeof
from threading import Lock
from typing import Annotated, Any, Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coevo.lineage.atomic_files import make_private, write_atomically
from coevo.records.message import Message, Role
from coevo.tasks.gateway.session_tree import DrawnTurn
from coevo.utilities.errors import CoevoError
from coevo.utilities.line_file import append_line, drop_torn_line

TokenId = Annotated[int, Field(ge=0, lt=2**31)]
Mode = Literal["training", "evaluation"]
StoredNumber = Annotated[float, Field(allow_inf_nan=False)]
MAX_TEXT_CHARS = 2**16
"""Maximum characters of a text of an outcome."""
REWARD = 1e6
"""Maximum size of a reward or a score."""
ReportedNumber = Annotated[float, Field(ge=-REWARD, le=REWARD)]
ScoreName = Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9_]([A-Za-z0-9_-]|\.[A-Za-z0-9_-])*$")]
"""Name of a score, which is part of a metric's name: MLflow takes it, and so does a manifest."""
FILES: dict[Mode, str] = {"training": "training.jsonl", "evaluation": "evaluation.jsonl"}
"""File of the sessions of a mode."""


class _Stored(BaseModel):
    """A part of a line: unknown fields and other types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SessionTask(_Stored):
    """Task of a session, as retrieval needs it (``coevo.records.task.About``).

    ``data`` is that of a task of the run's environment, from which a run that trains can play it again.
    """

    id: str = Field(default="", max_length=200)
    kind: str = Field(default="", max_length=200)
    instruction: str = Field(default="", max_length=2**16)
    scope: str = Field(default="", max_length=200)
    data: dict[str, Any] = Field(default_factory=dict, max_length=1000)

    @property
    def bytes(self) -> int:
        """Bytes that it takes in memory; what Python shares is counted each time."""
        size, left = 0, [self.id, self.kind, self.instruction, self.scope, self.data]
        while left:
            size += getsizeof(part := left.pop())
            if isinstance(part, dict):
                left += [*part.keys(), *part.values()]
            elif isinstance(part, list):
                left += part
        return size


class StepReport(_Stored):
    """How the world took an answer, as the client reports it; what is missing is read from the messages.

    Attributes:
        turn: number of the answer in its session.
        observation: what the agent saw before it.
        action: what it did.
        feedback: what the world said to that.
        reward: part of the session's return.
        valid: False if the world did not understand the action.
    """

    turn: int = Field(ge=0)
    observation: str | None = Field(default=None, max_length=MAX_TEXT_CHARS)
    action: str | None = Field(default=None, max_length=MAX_TEXT_CHARS)
    feedback: str | None = Field(default=None, max_length=MAX_TEXT_CHARS)
    reward: ReportedNumber = 0.0
    valid: bool = True


class PlayedActions(_Stored):
    """Actions of an agent in its session, for which the environment has the outcome."""

    actions: tuple[Annotated[str, Field(max_length=MAX_TEXT_CHARS)], ...] = Field(
        strict=False, min_length=1, max_length=10_000
    )


class SessionOutcome(_Stored):
    """Outcome of a session, as its client reports it, or the environment tells it.

    Attributes:
        reward: return of the whole session.
        success: whether the task was solved.
        scores: values that the reward is made of, by name: letters, digits, '.', '_' and '-'.
        steps: reports on single answers.
        actions: what the agent did, if the environment tells the outcome; empty for a client's report.
    """

    reward: ReportedNumber
    success: bool
    scores: dict[ScoreName, ReportedNumber] = Field(default_factory=dict, max_length=100)
    steps: tuple[StepReport, ...] = Field(default=(), strict=False, max_length=10_000)
    actions: tuple[str, ...] = Field(default=(), strict=False)

    @property
    def digest(self) -> str:
        """Hash of the outcome: reported twice, with scores in any order, it is one outcome."""
        return sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()


class CallRecord(_Stored):
    """A call of a message."""

    name: str
    arguments: str
    id: str


class MessageRecord(_Stored):
    """A message."""

    role: Role
    text: str
    calls: tuple[CallRecord, ...] = Field(default=(), strict=False)

    @classmethod
    def of(cls, message: Message) -> "MessageRecord":
        """The stored form of a message."""
        calls = (CallRecord(name=each.name, arguments=each.arguments, id=each.id) for each in message.calls)
        return cls(role=message.role, text=message.text, calls=tuple(calls))


class TurnRecord(_Stored):
    """An answer, see ``DrawnTurn``; ``parent`` is the number of the answer that its prompt continues."""

    branch: int
    parent: int | None
    tools: str
    messages: tuple[MessageRecord, ...] = Field(strict=False)
    entries: tuple[str, ...] = Field(strict=False)
    added: tuple[TokenId, ...] = Field(strict=False)
    token_ids: tuple[TokenId, ...] = Field(strict=False)
    logprobs: tuple[StoredNumber, ...] = Field(strict=False)
    finished: bool
    answer: MessageRecord
    policy: str = ""
    bank: str = ""
    scores: tuple[StoredNumber | None, ...] = Field(strict=False)
    drawing: StoredNumber | None


class SessionRecord(_Stored):
    """A session that ended; ``outcome`` is None if it was abandoned or lost."""

    session: str
    end: Literal["outcome", "abandoned", "lost"]
    outcome: SessionOutcome | None
    mode: Mode
    group: str
    task: SessionTask
    policy: str
    bank: str
    turns: tuple[TurnRecord, ...] = Field(strict=False)

    @property
    def ended(self) -> "Ended":
        """Its end, by which a repeated outcome is known."""
        return Ended(self.end, "" if self.outcome is None else self.outcome.digest)

    def prompt_ids(self, number: int) -> tuple[int, ...]:
        """Token ids of the whole prompt of an answer."""
        turn, parts = self.turns[number], [self.turns[number].added]
        while turn.parent is not None:
            turn = self.turns[turn.parent]
            parts += [turn.token_ids, turn.added]
        return tuple(index for part in reversed(parts) for index in part)


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a session: ``outcome``, ``abandoned`` or ``lost``, and the hash of its outcome."""

    end: str
    digest: str = ""


class SessionStore:
    """The sessions of one run that ended.

    Args:
        directory: created if missing; one process at a time may open it.

    Attributes:
        ended: end of each session by its name.
        ends: number of sessions by their end.
        late: outcomes of this process that came after the end.
        kept: called once a session is on the disk, before anybody hears of it; it must not fail.

    Raises:
        CoevoError: another process has it, or a file in it is damaged.
    """

    def __init__(self, directory: Path) -> None:
        make_private(directory)
        self._directory, self._writing = directory, Lock()
        self._held = FileLock(directory / "lock", blocking=False, thread_local=False)
        try:
            self._held.acquire()
        except Timeout:
            raise CoevoError(f"{directory}: another gateway of this run is open: stop it, or use it") from None
        self.late = 0
        self.kept: Callable[[], None] = lambda: None
        self.ended: dict[str, Ended] = {}
        for path in (directory / name for name in FILES.values()):
            drop_torn_line(path)
            self.ended |= {each.session: each.ended for each in read_sessions(path)}
        self.ends = Counter(each.end for each in self.ended.values())
        self._lose()

    def opened(self, name: str, mode: Mode) -> None:
        """Note that a session is open."""
        with self._opened.open("a", encoding="utf-8") as file:
            file.write(f"{name} {mode}\n")

    def keep(self, record: SessionRecord) -> Ended:
        """Write a session to the disk; it is there when this returns.

        Raises:
            CoevoError: a session of its name has ended before.
            OSError: it cannot be written.
        """
        with self._writing:
            if record.session in self.ended:
                raise CoevoError(f"session {record.session} is on the disk already: choose another name")
            append_line(self._directory / FILES[record.mode], record.model_dump_json())
            self.ended[record.session] = ended = record.ended
            self.ends[ended.end] += 1
        self.kept()
        return ended

    def outcome_of(self, name: str) -> SessionOutcome | None:
        """Outcome of a session that ended with one; None of any other. It reads the files."""
        records = (each for file in FILES.values() for each in read_sessions(self._directory / file))
        return next((each.outcome for each in records if each.session == name), None)

    def close(self) -> None:
        """Let another process open it."""
        self._held.release()

    @property
    def _opened(self) -> Path:
        return self._directory / "opened"

    def _lose(self) -> None:
        """Count the sessions that a dead process had open as lost."""
        if self._opened.exists():
            whole, _, _ = self._opened.read_text(encoding="utf-8", errors="replace").rpartition("\n")
            for line in filter(None, whole.split("\n")):
                name, _, mode = line.partition(" ")
                if name not in self.ended and mode in FILES:
                    self.keep(_lost(name, mode))
        write_atomically(self._opened, "")


def read_sessions(path: Path) -> Iterator[SessionRecord]:
    """Sessions in a file, oldest first; a last line without its end is left out.

    Raises:
        CoevoError: a line is no session.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            yield parse_session(line, path, number)


def parse_session(line: bytes, path: Path, number: int) -> SessionRecord:
    """Session of a line, counted from 1.

    Raises:
        CoevoError: it is none.
    """
    try:
        return SessionRecord.model_validate_json(line)
    except ValidationError as error:
        said = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise CoevoError(f"{path}: line {number} is no session ({said}): remove the line") from None


def turn_records(turns: Iterable[DrawnTurn]) -> tuple[TurnRecord, ...]:
    """Stored form of the answers of a session."""
    return tuple(
        TurnRecord(
            branch=turn.branch,
            parent=None if turn.parent is None else turn.parent.number,
            tools=turn.tools,
            messages=tuple(map(MessageRecord.of, turn.messages)),
            entries=turn.entries,
            added=tuple(turn.added),
            token_ids=tuple(turn.token_ids),
            logprobs=tuple(turn.logprobs),
            finished=turn.finished,
            answer=MessageRecord.of(turn.answer),
            policy=turn.origin.policy,
            bank=turn.origin.bank,
            scores=turn.scores,
            drawing=turn.drawing,
        )
        for turn in turns
    )


def _lost(name: str, mode: Mode) -> SessionRecord:
    empty: Sequence[TurnRecord] = ()
    return SessionRecord(
        session=name, end="lost", outcome=None, mode=mode, group="", task=SessionTask(), policy="", bank="",
        turns=tuple(empty),
    )  # fmt: skip
