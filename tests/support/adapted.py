"""Environments of other libraries for tests, and actions of any kind for them."""

import json
from contextlib import closing, contextmanager

import pytest

from coevo.configs.adapter_config import FactoryConfig, GymnasiumConfig
from coevo.envs.failures import EpisodeFailure
from coevo.envs.registry import make
from coevo.records.draws import generator, key

RANDOM_ACTIONS = (1500, pytest.param(10_000, marks=pytest.mark.full))
"""Numbers of random actions: a few in each test run, and all that an adapter has to bear."""
COUNTS = [{"prompt": f"exercise {n}", "target": n % 4 + 1} for n in range(40)]
"""Rows for ``factories.Counter``."""


def gymnasium(**settings):
    return closing(make(GymnasiumConfig(**settings)))


def factory(name, path=None, **settings):
    rows = {} if path is None else {"rows": str(path)}
    return closing(make(FactoryConfig(factory=f"support.factories:{name}", **rows, **settings)))


def rows_file(folder, rows=COUNTS):
    """A table of tasks in a folder."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def call(name, /, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def one(env, state, action):
    (step,) = env.try_step([state], [action])
    return step


def begun(env, draw="a"):
    """A first state, and the observation there."""
    return env.start(env.sample(1, key(draw))[0])


@contextmanager
def first_state(opened):
    with opened as env:
        yield env, begun(env)[0]


def anything(rng, calls=("no",)):
    """A random text: control characters, halves of pairs, JSON, calls of tools, and once in a while a megabyte."""
    kind, size = int(rng.integers(6)), int(rng.integers(1, 40))
    if kind == 0:
        return "".join(map(chr, rng.integers(0, 32, size)))
    if kind == 1:
        return "".join(map(chr, rng.integers(0, 0x110000, size)))
    if kind == 2:
        return chr(int(rng.integers(0, 0xD800))) * (10**6 if rng.integers(300) == 0 else size)
    if kind == 3:
        value = rng.choice(["x" * size, "\ud800\0\x1b[2J", "9" * 30])
        return call(
            str(rng.choice(calls)), **{str(rng.choice(["a", "by", "word", "tags", "answer", "text"])): str(value)}
        )
    if kind == 4:
        return str(int(rng.integers(-3, 10**9)))
    return "".join(rng.choice(list('{}[]":,ab\\ \n\0'), size))


def failures(env, count=10_000, calls=("no",), side_by_side=50):
    """Failures of so many random actions; an episode that ends is followed by another one."""
    rng, found = generator(key("random actions")), []
    tasks = env.sample(side_by_side, key("random actions"))
    states = [state for state, _ in env.try_start(tasks)]
    for _ in range(count // len(states)):
        steps = env.try_step(states, [anything(rng, calls) for _ in states])
        found += [step for step in steps if isinstance(step, EpisodeFailure)]
        over = [index for index, step in enumerate(steps) if isinstance(step, EpisodeFailure) or step.done]
        fresh = dict(zip(over, env.try_start([tasks[index] for index in over]), strict=True))
        states = [fresh[index][0] if index in fresh else step.state for index, step in enumerate(steps)]
    return found
