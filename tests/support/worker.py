"""Rollout workers of the embedded environment: a real, untrained policy, and its expert."""

from functools import cache
from threading import Lock

from benchmarks.learning.scripted import ExpertWorker
from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.models.policy.context import CONTEXT_WORDS
from coevo.models.policy.policy import build
from coevo.records.draws import key
from coevo.tasks.play.play import RolloutWorker
from coevo.tasks.run.assemble import worker_of

CONFIG = load_recipe("homerules-coevo-rl")


@cache
def environment():
    return make(CONFIG.env)


@cache
def worker():
    """An untrained rollout worker: what it writes is noise, but always the same noise for the same key."""
    policy = build(CONFIG.policy, (*environment().vocabulary, *CONTEXT_WORDS), key(1))
    return worker_of(CONFIG, environment(), policy)


class Shared:
    """The engine of a rollout worker for several threads, which servers are by themselves."""

    def __init__(self, engine):
        self.engine, self.lock = engine, Lock()

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def generate(self, requests):
        with self.lock:
            return self.engine.generate(requests)


def alone(env=None, max_turns=CONFIG.rollout.max_turns, kind=RolloutWorker, context=None):
    """The untrained rollout worker at the pace of episodes."""
    real = worker()
    return kind(env or environment(), context or real.context, Shared(real.engine), max_turns, alone=True)


def expert_worker(kind=ExpertWorker):
    return kind(environment(), worker().context, worker().engine, CONFIG.rollout.max_turns)


class Keeping(ExpertWorker):
    """The expert, which remembers what it was asked to play and what it has played, call by call."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.asked, self.played = [], []

    def play(self, attempts):
        self.asked.append(attempts)
        self.played.append(super().play(attempts))
        return self.played[-1]


class Short:
    """An engine that attends to few tokens."""

    def __init__(self, engine, longest_prompt):
        self.generate, self.forget, self.longest_prompt = engine.generate, engine.forget, longest_prompt
