"""Endpoints with a limit, in virtual time: the real writer model asks them, and hours pass in milliseconds."""

import asyncio
import selectors
from itertools import count
from math import ceil

import anyio

from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.models.writer_models import chat_endpoint, request_pace
from coevo.models.writer_models.endpoint_writer_model import EndpointWriterModel
from coevo.models.writer_models.failure import After, Failure
from coevo.records.writing import Question, Reply

_NAMES = count()


class Within:
    """At most so many requests in any interval; ``counts`` refused ones as well, ``hint`` says when to come back."""

    def __init__(self, most, interval, hint=False, counts=False):
        self.most, self.interval, self.hint, self.counts, self.times = most, interval, hint, counts, []

    def refuses(self, now):
        """Seconds that a refusal asks to wait, 0 for an unknown time; None if the request is taken."""
        self.times = [each for each in self.times if now - each < self.interval]
        taken = len(self.times) < self.most
        if taken or self.counts:
            self.times = [*self.times, now][-self.most :]
        return None if taken else max(1, ceil(self.times[0] + self.interval - now)) if self.hint else 0

    def ended(self):
        """A request has its answer."""

    def least(self, questions):
        """Seconds that so many questions take at least."""
        return (ceil(questions / self.most) - 1) * self.interval


class ByTheClock(Within):
    """At most so many in each interval of a clock, of which a third is over at the start."""

    def refuses(self, now):
        left = self.interval - (now + self.interval / 3) % self.interval
        self.times = [each for each in self.times if now - each < self.interval - left]
        taken = len(self.times) < self.most
        self.times += [now] if taken else []
        return None if taken else max(1, ceil(left)) if self.hint else 0


class Filling(Within):
    """A bucket of so many tokens, which gets one per interval."""

    level, since = None, 0.0

    def refuses(self, now):
        level = self.most if self.level is None else min(self.most, self.level + (now - self.since) / self.interval)
        self.level, self.since = level - (level >= 1), now
        return None if level >= 1 else max(1, ceil((1 - level) * self.interval)) if self.hint else 0

    def least(self, questions):
        return max(0, questions - self.most) * self.interval


class AtOnce(Within):
    """So many at once, each for an interval."""

    waiting = 0

    def refuses(self, _):
        taken = self.waiting < self.most
        self.waiting += taken
        return None if taken else int(self.hint)

    def ended(self):
        self.waiting -= 1

    def least(self, questions):
        return ceil(questions / self.most) * self.interval


class ClosedFor:
    """Refuses all between two times, and behaves as another one otherwise."""

    def __init__(self, start, end, other):
        self.start, self.end, self.other = start, end, other

    def refuses(self, now):
        return 0 if self.start <= now < self.end else self.other.refuses(now)

    def ended(self):
        self.other.ended()

    def least(self, questions):
        return self.end + self.other.least(questions)


class _Selector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout=None):
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.clock = _Selector()
        super().__init__(self.clock)

    def time(self):
        return self.clock.now


def batch(monkeypatch, endpoint, questions, seconds, answers=0.05, refusals=0.02, concurrency=16):
    """Time at which the last answer came, number of answers, and of requests, in virtual time.

    ``answers`` and ``refusals`` are the seconds that each of them takes.
    """
    loop = _VirtualLoop()
    for module in (request_pace, chat_endpoint):
        monkeypatch.setattr(module, "monotonic", loop.time)
    fields = {"model": f"m{next(_NAMES)}", "seconds": seconds, "concurrency": concurrency}
    made = EndpointWriterModel(EndpointWriterModelConfig(type="endpoint", url="http://127.0.0.1:9", **fields), print)
    came = []

    async def sent(_, body):
        made.traffic.requests += 1
        await anyio.sleep(refusals / 2)
        pause = endpoint.refuses(loop.time())
        await anyio.sleep(refusals / 2 if pause is not None else answers)
        if pause is not None:
            return Failure("wait", After.WAIT, pause)
        endpoint.ended()
        return Reply("x", True, 1, 1)

    async def asked(wave, number):
        with anyio.move_on_at(wave.until):
            reply = await made._reply(wave, Question("reflection", "t", (), "", str(number)))
            came.extend([] if reply.fault else [loop.time()])

    async def all_of_them():
        wave = made._endpoint.wave(None, seconds)
        async with anyio.create_task_group() as group:
            for number in range(questions):
                group.start_soon(asked, wave, number)

    monkeypatch.setattr(made._endpoint, "send", sent)
    try:
        loop.run_until_complete(all_of_them())
    finally:
        loop.close()
    return max(came, default=0.0), len(came), made.traffic.requests
