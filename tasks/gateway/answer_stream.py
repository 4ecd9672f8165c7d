"""Answers on their way to a client while they are drawn.

The engine's thread tells every token; what nothing can change any more (``coevo.models.answers.incremental``) goes to
the event loop at once. The answer that a session keeps begins with what was sent, whatever follows it.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from coevo.models.answers.incremental import IncrementalReader
from coevo.models.engines.requests import Detokenizer
from coevo.models.policy.message_prompts import ReadAnswer
from coevo.records.answer_faults import Fault
from coevo.records.episode import Completion
from coevo.records.message import Message
from coevo.utilities.errors import CoevoError


class ClientGoneError(CoevoError):
    """The client of an answer that was being drawn has left, and its session does not get the answer."""


class AnswerPiece(NamedTuple):
    """Next text of the answer with this number; ``reasoning`` is the thinking before all its text."""

    answer: int
    text: str
    reasoning: str


class StreamedAnswer:
    """One answer as it is drawn; the engine's thread calls it.

    Args:
        begin: makes the parts that read an answer from its beginning.
        most: maximum tokens.
        send: takes text and reasoning; False if the client is gone.

    Attributes:
        sent: all text that was sent.
    """

    def __init__(
        self,
        begin: Callable[[], tuple[Detokenizer, IncrementalReader]],
        most: int | None,
        send: Callable[[str, str], bool],
    ) -> None:
        self._begin, self._most, self._send = begin, most, send
        self._words, self._reader = begin()
        self._read, self.sent = "", ""

    def __call__(self, number: int, token: int) -> bool:
        """Hear a token, as ``TokenListener``."""
        if number == 0:
            self._words, self._reader = self._begin()
            self._read = ""
        self._read += self._reader.feed(self._words.add(token))
        more = self._read[len(self.sent) :] if self._read.startswith(self.sent) else ""
        self.sent += more
        is_wanted = self._send(more, self._reader.reasoning)
        return is_wanted and not self._reader.stopped and (self._most is None or number + 1 < self._most)

    def settled(self, read: ReadAnswer, text: str) -> ReadAnswer:
        """The whole answer, which begins with what was sent.

        Args:
            read: the answer as it reads when it is whole.
            text: its text.
        """
        if read.message.text.startswith(self.sent):
            return read
        # A mark turned what was sent into thinking or notation, where one is not expected.
        start = self._reader.start
        at = start if text.startswith(self.sent, start) else text.find(self.sent)
        rest = text[at + len(self.sent) :] if at >= 0 else ""
        return ReadAnswer(Message.answer(self.sent + rest), read.reasoning, read.fault or Fault.MALFORMED_CALL)


class AnswerStream:
    """Answers to one request on their way to its client; made and read in the event loop.

    Args:
        begin: makes the parts that read an answer.
        count: number of answers.
        most: maximum tokens of an answer; None for no limit beside the engine's.

    Attributes:
        pieces: what can be sent, in order.
        answers: each answer.
        closed: True once the client is gone.
    """

    def __init__(
        self, begin: Callable[[], tuple[Detokenizer, IncrementalReader]], count: int, most: int | None
    ) -> None:
        self.pieces: asyncio.Queue[AnswerPiece] = asyncio.Queue()
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self.answers = [StreamedAnswer(begin, most, self._sender(index)) for index in range(count)]
        self._drawing: Sequence[Future[Completion]] = ()

    async def drawn(self, answers: "Sequence[Future[Completion]]") -> list[Any]:
        """Wait for completions.

        Raises:
            ClientGoneError: nobody waits for them any longer.
        """
        self._drawing = answers
        found = await asyncio.gather(*map(asyncio.wrap_future, answers), return_exceptions=True)
        if self.closed:
            raise ClientGoneError("the client left before its answer was whole")
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return found

    def close(self) -> None:
        """Note that the client is gone: nothing further is drawn for it."""
        self.closed = True
        for each in self._drawing:
            each.cancel()  # one that is being drawn ends with its next token

    def _sender(self, index: int) -> Callable[[str, str], bool]:
        def send(text: str, reasoning: str) -> bool:
            if text and not self.closed:
                self._loop.call_soon_threadsafe(self.pieces.put_nowait, AnswerPiece(index, text, reasoning))
            return not self.closed

        return send
