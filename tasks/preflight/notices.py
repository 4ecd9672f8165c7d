"""Notices before a start: what a run does in another way than its user may expect, one line each."""

from functools import partial
from time import monotonic
from typing import Any

from coevo.configs.bank.admission import notice
from coevo.configs.bank.writer import ModelWriterConfig
from coevo.configs.run import RunConfig
from coevo.envs.base import Environment
from coevo.envs.failures import Loss, attempted
from coevo.envs.registry import make
from coevo.memory.evidence.references import References
from coevo.memory.library import Library
from coevo.memory.writers.base import Evidence, writer_of
from coevo.models.policy.card import CARD, ignored
from coevo.records.draws import extend, key
from coevo.records.episode import Episode
from coevo.records.task import key_by
from coevo.tasks.preflight.environment import guided, sampled
from coevo.tasks.writing.teacher import episode

EPISODES, LEAST, SECONDS = 24, 8, 10.0
"""Most and fewest expert episodes in which a rule must find something, and seconds after which no more are played."""


def notices(config: RunConfig, env: Environment[Any] | None = None) -> list[str]:
    """Notices of a run; empty if there is nothing to say.

    Args:
        config: its configuration.
        env: its environment if it is there; else it is made where a notice needs it.
    """
    unproven = None if config.bank is None else notice(config.bank.admission)
    return [*([unproven] if unproven else []), *_sampling(config), *_guide(config, env), *_unread(config, env)]


def _sampling(config: RunConfig) -> list[str]:
    named = ignored(config.policy, config.rollout.sampling)
    if not named:
        return []
    return [f"the model's {CARD} sets {', '.join(named)}; the run does not follow it: see rollout.sampling"]


def _guide(config: RunConfig, env: Environment[Any] | None) -> list[str]:
    if config.context.style == "words":
        return []
    env = env or make(config.env)
    (task,) = sampled(env, 1, key(config.seed, "notices"))
    guide = guided(env, task)
    if guide.text or guide.tools:
        return []
    return [f"{env.name} has no guide: prompts do not say which actions exist; add Environment.guide"]


def _unread(config: RunConfig, env: Environment[Any] | None) -> list[str]:
    """Say if a rule finds nothing to write in expert episodes.

    A model, a slow environment, or one without expert is not tried; ``alarm.idle`` reports an idle writer in any case.
    """
    bank = config.bank
    if bank is None or isinstance(bank.writer, ModelWriterConfig) or env is None or not env.has_expert:
        return []
    pool, draw = key_by(bank.key), key(config.seed, "notices", "writer")
    until, played = monotonic() + SECONDS, list[Episode]()
    for task in sampled(env, EPISODES, draw):
        tried = attempted(partial(episode, env, task, 0, extend(draw, task.id), noise=0.0))
        played += [] if isinstance(tried, Loss) else [tried]
        if monotonic() > until:
            break
    if len(played) < LEAST:
        return []
    proposal = writer_of(bank.writer, pool).write(Evidence(played, Library(()), References(pool, 0), 0))
    if proposal.entries or proposal.edits:
        return []
    return [
        f"bank.writer.type={bank.writer.type} finds nothing to write in {len(played)} episodes of {env.name}: it "
        "quotes feedback that names the action and a word of the task; a model writes there, as "
        "bank.writer.type=model-contrast"
    ]
