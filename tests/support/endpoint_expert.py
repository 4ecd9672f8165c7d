"""The expert of HomeRules behind an endpoint: it knows the messages, and fails as often as a test wants.

An answer depends on messages and seed alone, a failure on the number of the request.
"""

import json
import random
import re
from dataclasses import dataclass, field
from threading import Lock

from support.completions import HANGS, Answer, refused, said

from coevo.envs.homerules.house_expert import answer
from coevo.records.demonstration import Moment, Note
from coevo.records.draws import key

TASK = re.compile(r"^Task: (.*)$", re.MULTILINE)
SEEN = re.compile(r"^You observe: (.*)$", re.MULTILINE)
QUOTED = re.compile(r'"([^"\n]+)"')
WILD = 0.05
"""Share of answers without a usable action."""


def spoken(body):
    """The answer to a request, as text."""
    said = [message["content"] for message in body["messages"] if message["role"] != "assistant"]
    (task,), seen = TASK.findall("\n".join(said)), SEEN.findall(said[-1])[-1]
    notes = tuple(Note(text) for text in QUOTED.findall("\n".join(said)))
    draw = key(body.get("seed", 0), json.dumps(body["messages"]))
    if random.Random(repr(draw)).random() < WILD:
        return "I do not know."
    found = answer(Moment(task, notes, (), seen), 1, draw)
    return f"Thought: {found.thought}\nAction: {found.action}"


def tokens(body, text=None):
    """Tokens of a request and of its answer."""
    asked = sum(len(message["content"]) // 4 + 4 for message in body["messages"])
    return asked, len(spoken(body) if text is None else text) // 4 + 1


@dataclass
class ExpertEndpoint:
    """``behave`` of ``completions``, with shares of its failures.

    Attributes:
        busy, hang, broken: shares of 429, of requests without an answer in time, and of answers that are no completion.
        bill: tokens of every request that it has worked on, answered or not.
        served: what it was asked and has answered as it should, one item for each time.
    """

    busy: float = 0.0
    hang: float = 0.0
    broken: float = 0.0
    bill: int = 0
    served: list = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def __call__(self, request):
        chance = random.Random(request.number).random()
        if chance < self.busy:
            return refused("slow down", 429, Retry_After="0.05")
        text = spoken(request.body)
        used = tokens(request.body, text)
        with self.lock:
            self.bill += sum(used)
            if chance >= self.busy + self.hang + self.broken:
                self.served.append(json.dumps(request.body, sort_keys=True))
        if chance < self.busy + self.hang:
            return HANGS
        if chance < self.busy + self.hang + self.broken:
            return Answer(b'{"choices": [{"mess')
        return said(text, used=used)
