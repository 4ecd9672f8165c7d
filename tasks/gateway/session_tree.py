"""The tree of a session: every answer with the exact tokens that it was drawn from and consists of.

A client sends its whole history again with each request. The longest path of answers that the history repeats is
found, and the prompt continues that path's tokens. A history that was rewritten leaves the path where it differs, and
opens a branch there. Clients may write a message's arguments anew and drop blanks at an answer's ends (``Message``).
"""

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from sys import getsizeof
from typing import NamedTuple

from coevo.records.episode import Completion
from coevo.records.message import Message

IDS, LOGPROBS = "I", "d"
"""Types of the arrays of token ids and of log-probs."""
TURN_BYTES = 2048
"""Bytes that a turn takes in addition to its texts and numbers."""


class AnswerOrigin(NamedTuple):
    """Names of the policy and of the bank that an answer is from, ``RUN@N``; the bank is empty without one."""

    policy: str = ""
    bank: str = ""


UNNAMED = AnswerOrigin()


@dataclass(frozen=True, slots=True, eq=False)
class DrawnTurn:
    """One answer in a session.

    Attributes:
        number: number of answers that the session drew before.
        branch: number of the branch; an answer that continues the latest one of a branch belongs to it.
        parent: answer that the prompt continues; None for an opening.
        tools: JSON of the tools that the prompt declares.
        messages: the client's messages behind the parent's answer; all of them in an opening.
        entries: ids of the bank's entries that these messages show.
        added: token ids of the prompt behind those of the parent's prompt and answer.
        token_ids: drawn token ids.
        logprobs: log-probability of each.
        finished: True if an end token was drawn.
        answer: the message that the client got.
        origin: policy and bank that it is from.
        scores: score that retrieval gave each of ``entries``, None where it gave none.
        drawing: seconds from its prompt to the whole answer, which answers of one request share.
    """

    number: int
    branch: int
    parent: "DrawnTurn | None"
    tools: str
    messages: tuple[Message, ...]
    entries: tuple[str, ...]
    added: "array[int]"
    token_ids: "array[int]"
    logprobs: "array[float]"
    finished: bool
    answer: Message
    origin: AnswerOrigin = UNNAMED
    scores: tuple[float | None, ...] = ()
    drawing: float | None = None

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """Token ids of the whole prompt."""
        return (*history_ids(self.parent), *self.added)

    @property
    def bytes(self) -> int:
        """Bytes of memory that the answer takes; texts count twice, since retrieval keeps its queries."""
        numbers = sum(each.itemsize * len(each) for each in (self.token_ids, self.logprobs))
        return _asked_bytes(self.messages, self.added) + 2 * _text_bytes(self.answer) + numbers

    @property
    def held(self) -> tuple[str, ...]:
        """Ids of all entries that the prompt shows, in the order in which they were first shown."""
        return tuple(name for turn in path_to(self) for name in turn.entries)


class HistoryMatch(NamedTuple):
    """Place of a request in a session.

    Attributes:
        parent: latest answer that the history repeats; None if it repeats none.
        rest: the messages behind it.
    """

    parent: DrawnTurn | None
    rest: tuple[Message, ...]


class AskedPrompt(NamedTuple):
    """The prompt of an answer.

    Attributes:
        match: place of the request.
        tools: JSON of its tools.
        entries: ids of the entries that the rest of the messages shows.
        added: token ids behind those of the parent.
        origin: policy that is asked, and bank of the entries.
        scores: score that retrieval gave each of ``entries``, None where it gave none.
    """

    match: HistoryMatch
    tools: str
    entries: tuple[str, ...]
    added: Sequence[int]
    origin: AnswerOrigin = UNNAMED
    scores: tuple[float | None, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of memory that an answer takes, without the answer itself."""
        return _asked_bytes(self.match.rest, self.added)


class SessionTree:
    """Answers of a session, in the order in which they were drawn."""

    def __init__(self) -> None:
        self.turns: list[DrawnTurn] = []
        self._at: dict[tuple[object, ...], DrawnTurn] = {}
        """Answers by parent, tools, and a hash of the messages between: a search hashes each message once."""
        self._continued: set[int] = set()
        self._branches = 0
        self._tools: dict[str, str] = {}

    def match(self, messages: Sequence[Message], tools: str) -> HistoryMatch:
        """Find the longest path of answers that a history repeats; of equal answers to one prompt, the first."""
        parent: DrawnTurn | None = None
        since = 0
        while (found := self._next(parent, messages, since, tools)) is not None:
            parent, since = found
        return HistoryMatch(parent, tuple(messages[since:]))

    def add(
        self, asked: AskedPrompt, completion: Completion, answer: Message, drawing: float | None = None
    ) -> DrawnTurn:
        """Add an answer that was drawn, in so many seconds."""
        (parent, rest), tools = asked.match, self._tools.setdefault(asked.tools, asked.tools)
        turn = DrawnTurn(
            number=len(self.turns),
            branch=self._branch(parent),
            parent=parent,
            tools=tools,
            messages=rest,
            entries=asked.entries,
            added=array(IDS, asked.added),
            token_ids=array(IDS, completion.token_ids),
            logprobs=array(LOGPROBS, completion.logprobs),
            finished=completion.finished,
            answer=answer,
            origin=asked.origin,
            scores=asked.scores,
            drawing=drawing,
        )
        self.turns.append(turn)
        told = blake2b(b"".join(map(_written, (*rest, answer))))
        self._at.setdefault(_key(parent, tools, told.digest()), turn)
        return turn

    def _next(
        self, parent: DrawnTurn | None, messages: Sequence[Message], since: int, tools: str
    ) -> tuple[DrawnTurn, int] | None:
        """The next answer of the history behind ``parent``, and the number of messages up to it."""
        told = blake2b()
        for index in range(since, len(messages) - 1):
            told.update(_written(messages[index]))
            if messages[index].role == "assistant":
                found = self._at.get(_key(parent, tools, told.digest()))
                if found is not None:
                    return found, index + 1
        return None

    def _branch(self, parent: DrawnTurn | None) -> int:
        if parent is not None and parent.number not in self._continued:
            self._continued.add(parent.number)
            return parent.branch
        self._branches += 1
        return self._branches - 1


def path_to(turn: DrawnTurn | None) -> list[DrawnTurn]:
    """Answers from an opening to this one."""
    path = []
    while turn is not None:
        path.append(turn)
        turn = turn.parent
    return path[::-1]


def history_ids(turn: DrawnTurn | None) -> tuple[int, ...]:
    """Token ids up to the end of an answer; empty for None."""
    ids = array(IDS)
    for each in path_to(turn):
        ids.extend(each.added)
        ids.extend(each.token_ids)
    return tuple(ids)


def _asked_bytes(messages: Sequence[Message], added: Sequence[int]) -> int:
    return TURN_BYTES + 2 * sum(map(_text_bytes, messages)) + array(IDS).itemsize * len(added)


def _text_bytes(message: Message) -> int:
    """Bytes of memory that the texts of a message take."""
    return sum(
        map(getsizeof, (message.text, *(text for each in message.calls for text in (each.name, each.arguments))))
    )


def _key(parent: DrawnTurn | None, tools: str, told: bytes) -> tuple[object, ...]:
    return (-1 if parent is None else parent.number, tools, told)


def _written(message: Message) -> bytes:
    """A line of its own for each message; equal messages have equal lines."""
    calls = [(call.name, call.arguments) for call in message.calls]
    return f"{json.dumps((message.role, message.text, calls))}\n".encode()
