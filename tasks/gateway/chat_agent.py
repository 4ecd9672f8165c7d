"""The agent behind the gateway: a client's messages become a prompt with lessons, and a completion a message.

Lessons stand in the opening of a branch, and later in the newest message, so that no prompt changes what earlier
prompts hold. Draws are keyed by the session, the tokens of the prompt, and how often the session asked for it: neither
other sessions nor the order of requests change them.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from threading import Lock
from time import perf_counter

import numpy as np

from coevo.memory.retrieval.index import Index
from coevo.models.engines.requests import Detokenizer, Engine, Request, completions_of
from coevo.models.policy.context import Context
from coevo.models.policy.language_model import ends_of
from coevo.models.policy.message_prompts import MessagePrompts
from coevo.records.answer_faults import Fault
from coevo.records.draws import Key, extend, key
from coevo.records.entry import Entry
from coevo.records.episode import Completion
from coevo.records.message import Message
from coevo.tasks.gateway.answer_stream import AnswerStream, StreamedAnswer
from coevo.tasks.gateway.draw_queue import DrawQueue
from coevo.tasks.gateway.gateway_session import GatewaySession, OverError
from coevo.tasks.gateway.session_store import SessionTask
from coevo.tasks.gateway.session_tree import (
    UNNAMED,
    AnswerOrigin,
    AskedPrompt,
    DrawnTurn,
    HistoryMatch,
    history_ids,
    path_to,
)
from coevo.tasks.play.play import overlong
from coevo.tasks.play.retrieve import NOT_SHOWN, Lacking, Retrieved, recall
from coevo.utilities.errors import CoevoError

SHORT_CHARS = 2**14
"""Maximum characters of new messages that are written without a thread of their own: they take a millisecond."""
TOKEN_CHARS = 128
"""Characters per token of a prompt that no text reaches on average: a longer one is refused before it is written."""
PLACEHOLDER = "{{lessons}}"
"""Text of a message in whose place lessons stand."""


class PromptTooLongError(CoevoError):
    """A prompt that leaves no room for an answer."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request for answers.

    Attributes:
        messages: the whole history, oldest first.
        tools: JSON list of tools, as the OpenAI interface writes them.
        count: number of answers.
        max_tokens: maximum tokens of an answer; None for that of the run, which is never exceeded.
        stop: texts that end an answer.
        seed: chooses other draws; None for those of the session.
        calls: False if answers shall hold no calls.
    """

    messages: tuple[Message, ...]
    tools: str = "[]"
    count: int = 1
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    calls: bool = True


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """One answer.

    Attributes:
        turn: the answer with its tokens.
        reasoning: thinking before it.
        reason: why it ends: ``stop``, ``length``, or ``tool_calls``.
        stop: the text of ``ChatRequest.stop`` that ended it; empty if none did.
        fault: why it could not be read whole (``Fault``); empty if it could.
    """

    turn: DrawnTurn
    reasoning: str
    reason: str
    stop: str
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Prompted:
    """A request whose prompt is written.

    Attributes:
        asked: prompt in the session.
        prompt_ids: all its token ids.
        entries: ids of all entries that the prompt shows.
        no_lesson: reason why no lesson of the task's own pool is among them, in one line; empty if some are.
    """

    asked: AskedPrompt
    prompt_ids: tuple[int, ...]
    entries: tuple[str, ...]
    no_lesson: str


class ChatAgent:
    """Answers sessions with one policy and one bank.

    Args:
        engine: engine at the policy.
        queue: queue before the engine.
        context: writer of lessons.
        prompts: writer of prompts.
        index: index over the bank; None to show no lesson.
        root: beginning of the keys of all draws.
    """

    def __init__(
        self,
        engine: Engine,
        queue: DrawQueue,
        context: Context,
        prompts: MessagePrompts,
        index: Index | None,
        root: Key,
    ) -> None:
        self._engine, self._queue = engine, queue
        self._context, self._prompts = context, prompts
        self._ends = ends_of(engine.policy)
        self._writing = Lock()
        self.serve(index, root, UNNAMED)

    def serve(self, index: Index | None, root: Key, origin: AnswerOrigin) -> None:
        """Answer from another bank, as another policy; nobody asks meanwhile.

        Open sessions continue with both: what their prompts hold already stays.
        """
        self._index, self._root, self._origin = index, root, origin
        self._lacking = None if index is None else Lacking(index)

    async def prompt(self, session: GatewaySession, asked: ChatRequest) -> Prompted:
        """Write the prompt of a request.

        Raises:
            PromptTooLongError: it leaves no room for an answer.
            CoevoError: the chat template cannot write these messages.
        """
        if reason := oversized(asked, self._engine.longest_prompt):
            raise PromptTooLongError(reason)
        match = session.tree.match(asked.messages, asked.tools)
        is_short = sum(len(message.text) for message in match.rest) <= SHORT_CHARS
        if is_short and self._prompts.knows(match.parent is not None, match.rest, asked.tools):
            return self._prompt(session, asked, match)
        return await asyncio.to_thread(self._prompt, session, asked, match)

    def stream(self, asked: ChatRequest) -> AnswerStream:
        """Stream for the answers of a request, in whose event loop it is read."""
        tokenizer = self._engine.policy.tokenizer
        return AnswerStream(
            lambda: (Detokenizer(tokenizer, self._ends), self._prompts.reader(asked.tools, asked.calls, asked.stop)),
            asked.count,
            asked.max_tokens,
        )

    async def draw(
        self, session: GatewaySession, asked: ChatRequest, prompted: Prompted, stream: AnswerStream | None = None
    ) -> list[ChatAnswer]:
        """Draw the answers of a request, and add them to its session.

        Args:
            session: the session.
            asked: the request.
            prompted: its prompt.
            stream: gets what can be sent before an answer is whole.

        Raises:
            ClientGoneError: the stream was closed meanwhile.
            OverError: the session ended meanwhile.
            FullError: it would have too many answers.
            CoevoError: the engine failed.
        """
        digest = blake2b(np.array(prompted.prompt_ids, dtype=np.uint32).tobytes(), digest_size=8).hexdigest()
        root = extend(self._root, session.name, digest, *(() if asked.seed is None else ("seed", asked.seed)))
        first = session.repeated(str(root), asked.count)
        requests = [
            Request(prompted.prompt_ids, extend(root, first + each), session.group or session.name or digest)
            for each in range(asked.count)
        ]
        since = perf_counter()
        with session.drawing(prompted.asked, asked.count):
            if stream is None:
                drawn = await asyncio.gather(*map(asyncio.wrap_future, self._queue.submit(requests)))
            else:
                drawn = await stream.drawn(self._queue.submit(requests, stream.answers))
        if not session.open:
            raise OverError(f"session {session.name} ended while this answer was drawn: open one of another name")
        parts: Sequence[StreamedAnswer | None] = [None] * asked.count if stream is None else stream.answers
        spent = perf_counter() - since
        return [self._answer(session, asked, prompted, spent, *each) for each in zip(drawn, parts, strict=True)]

    def texts(self, token_ids: Sequence[int]) -> list[str]:
        """Text of each token by itself."""
        texts: list[str] = self._engine.policy.tokenizer.batch_decode([[token] for token in token_ids])
        return texts

    def _prompt(self, session: GatewaySession, asked: ChatRequest, match: HistoryMatch) -> Prompted:
        if match.parent is not None and not self._prompts.continues(asked.tools):
            match = HistoryMatch(None, asked.messages)
        with self._writing:
            task = self._task(session, match)
            shown, scores, rest = self._with_lessons(session, match, task)
            lacking = self._lacking
        if match.parent is None:
            added = self._prompts.opening(rest, asked.tools)
        else:
            added = self._prompts.continued(match.parent.token_ids, rest, asked.tools)
        ids = (*history_ids(match.parent), *added)
        if reason := overlong(ids, self._engine.longest_prompt):
            raise PromptTooLongError(reason)
        held = () if match.parent is None else match.parent.held
        reason = NOT_SHOWN if lacking is None else lacking.reason(task, bool(held or shown))
        return Prompted(
            AskedPrompt(match, asked.tools, shown, added, self._origin, scores), ids, (*held, *shown), reason
        )

    def _task(self, session: GatewaySession, match: HistoryMatch) -> SessionTask:
        opening = match.rest if match.parent is None else path_to(match.parent)[0].messages
        return session.task_of(next((each.text for each in opening if each.role == "user"), ""))

    def _with_lessons(
        self, session: GatewaySession, match: HistoryMatch, task: SessionTask
    ) -> tuple[tuple[str, ...], tuple[float | None, ...], tuple[Message, ...]]:
        """Ids and scores of the entries that the new messages show, and these messages with them."""
        if session.experience is None or session.seen_in != self._origin:
            session.experience, session.seen_in = recall(self._index, extend(self._root, session.name)), self._origin
        seen = session.experience
        observation = match.rest[-1].text
        found = dict.fromkeys((*seen.of_task(task), *seen.of_step(task, observation)))
        held = () if match.parent is None else match.parent.held
        new = [entry for entry in self._context.shown(list(found), task.instruction) if entry.id not in held]
        scores = seen.scores(task, observation) if new and isinstance(seen, Retrieved) else {}
        shown = tuple(entry.id for entry in new)
        return shown, tuple(scores.get(name) for name in shown), self._placed(match, new, task.instruction)

    def _placed(self, match: HistoryMatch, new: Sequence[Entry], instruction: str) -> tuple[Message, ...]:
        text, rest = self._context.lessons(new, instruction), list(match.rest)
        marked = [index for index, each in enumerate(rest) if PLACEHOLDER in each.text]
        if marked:
            last = marked[-1]
            for index in marked:
                rest[index] = replace(
                    rest[index], text=rest[index].text.replace(PLACEHOLDER, text if index == last else "")
                )
        elif text:
            at = self._place(rest) if match.parent is None else len(rest) - 1
            rest[at] = replace(rest[at], text=f"{rest[at].text}\n\n{text}".strip())
        return tuple(rest)

    def _place(self, rest: Sequence[Message]) -> int:
        """Number of the message of an opening that shows lessons."""
        if self._context.leads and rest[0].role == "system":
            return 0
        return next((index for index, each in enumerate(rest) if each.role == "user"), len(rest) - 1)

    def _answer(
        self,
        session: GatewaySession,
        asked: ChatRequest,
        prompted: Prompted,
        spent: float,
        completion: Completion,
        part: StreamedAnswer | None,
    ) -> ChatAnswer:
        completion, stop = self._cut(completion, asked)
        read = self._prompts.read(completion.text, asked.tools, asked.calls)
        if part is not None:
            read = part.settled(read, completion.text)
        turn = session.keep(prompted.asked, completion, read.message, spent)
        ended = "stop" if completion.finished or stop else "length"
        reason = "tool_calls" if read.message.calls else ended
        fault = read.fault or (Fault.CUT_OFF if reason == "length" else "")
        return ChatAnswer(turn, read.reasoning, reason, stop, fault)

    def _cut(self, completion: Completion, asked: ChatRequest) -> tuple[Completion, str]:
        """The completion up to the limit of the request or its first stop, and that stop; tokens behind it are dropped.

        A draw depends on the draws before it alone, so what is left is what a shorter draw would have been.
        """
        most = asked.max_tokens
        if most is not None and len(completion.token_ids) > most:
            completion = self._beginning(completion, most)
        found = min(((at, stop) for stop in asked.stop if (at := completion.text.find(stop)) >= 0), default=None)
        if found is None:
            return completion, ""
        at, stop = found
        low, high = 1, len(completion.token_ids)
        while low < high:
            middle = (low + high) // 2
            holds = stop in self._beginning(completion, middle).text
            low, high = (low, middle) if holds else (middle + 1, high)
        return replace(self._beginning(completion, low), text=completion.text[:at]), stop

    def _beginning(self, completion: Completion, count: int) -> Completion:
        drawn = list(zip(completion.token_ids, completion.logprobs, strict=True))[:count]
        return completions_of(self._engine.policy.tokenizer, self._ends, [drawn])[0]


def root_of(seed: int, revision: int) -> Key:
    """Beginning of the keys of a gateway's draws."""
    return key(seed, revision, "gateway")


def oversized(asked: ChatRequest, most: int) -> str:
    """Reason why a request cannot fit ``most`` tokens, seen before it is written; empty if it may fit."""
    if len(asked.messages) > most:
        return f"{len(asked.messages)} messages, and the policy attends to {most} tokens: send fewer"
    texts = (message.text for message in asked.messages)
    arguments = (call.arguments for message in asked.messages for call in message.calls)
    count = len(asked.tools) + sum(map(len, texts)) + sum(map(len, arguments))
    if count > TOKEN_CHARS * most:
        return f"{count} characters of messages and tools, and the policy attends to {most} tokens: send fewer"
    return ""
