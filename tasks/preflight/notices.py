"""Notices before a start: what a run does in another way than its user may expect, one line each."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from functools import partial
from time import monotonic
from typing import Any

from coevo.configs.bank.admission_config import notice
from coevo.configs.bank.writer import ModelContrastConfig, OutsideWriterConfig, QuoteContrastConfig, asked_model
from coevo.configs.base import MAX_TOKENS
from coevo.configs.compositions import unused
from coevo.configs.policy_config import PretrainedPolicyConfig
from coevo.configs.rollout.rollout_config import COLD
from coevo.configs.run_config import RunConfig
from coevo.configs.threads import usable_cores
from coevo.envs.base import Environment
from coevo.envs.failures import EpisodeFailure, attempted
from coevo.envs.registry import make
from coevo.memory.evidence.references import References
from coevo.memory.library import Library
from coevo.memory.writers.writer import Evidence, writer_of
from coevo.models.policy.context import CONTEXT_WORDS, Context
from coevo.models.policy.ends import CARD, deviating_marks, ignored
from coevo.models.policy.tokenizers import tokenizer_of
from coevo.models.rewards import unrewarded
from coevo.records.draws import extend, key
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import Task, key_by
from coevo.tasks.preflight.environment_errors import asked, guided, sampled
from coevo.tasks.writing.writer_training import episode

EPISODES, LEAST, SECONDS = 24, 8, 10.0
"""Most and fewest expert episodes in which a rule must find something, and seconds after which no more are played."""
TASKS = 64
"""Tasks of training, and of each panel, whose keys are compared, or a few more."""
KEYS = ("scope+kind", "kind", "scope")
"""Keys that tasks of training and of a panel may share, the narrowest first."""
SHORTEST = Entry("", "do", "", "", "", "", "train", (), 0, 0)
"""The shortest lesson."""


def notices(
    config: RunConfig, env: Environment[Any] | None = None, outcomes: Sequence[tuple[bool, float]] = ()
) -> list[str]:
    """Notices of a run; empty if there is nothing to say.

    Args:
        config: its configuration.
        env: its environment if it is there; else it is made where a notice needs it, and nothing is played.
        outcomes: success and return of episodes that were played before.
    """
    unproven = None if config.bank is None else notice(config.bank.admission)
    said = [*([unproven] if unproven else []), *_unfired(config), *_sampling(config), *_marks(config)]
    said += [*greedy(config), *closed(config), *crowded(config)]
    with nullcontext(env) if env is not None else closing(make(config.env)) as there:
        said += [*_guide(config, there), *misrewarded(there, outcomes)]
        said += _unread(config, there, plays=env is not None)
        return [*said, *_panels(config, there), *unused(config)]


def _unfired(config: RunConfig) -> list[str]:
    if config.bank is None or config.schedule.type != "joint" or not 0 < config.iterations < config.bank.every:
        return []
    return [
        f"the writer does not fire in {config.iterations} iterations, and the bank stays as it is: set bank.every="
        f"{config.iterations} or less, or more iterations"
    ]


def _sampling(config: RunConfig) -> list[str]:
    ours, others = ignored(config.policy, config.rollout.sampling)
    if not ours and not others:
        return []
    named = ", ".join(f"{name}={str(value)[:40]}" for name, value in (ours | others).items())
    said = f"the model's {CARD} sets {named}; the run does not follow it"
    if ours:
        remedy = " ".join(f"rollout.sampling.{name}={value}" for name, value in ours.items())
        cuts = not ours.keys().isdisjoint(("top_p", "top_k"))
        if cuts and config.update is not None and config.update.loss.importance_cap is None:
            remedy += " update.loss.importance_cap=2.0"
        said += f": set {remedy}"
    if others:
        said += f"; no setting follows {', '.join(others)}"
    return [said]


def _marks(config: RunConfig) -> list[str]:
    if not isinstance(config.policy, PretrainedPolicyConfig) or config.context.style == "words":
        return []
    return deviating_marks(config.policy, tokenizer_of(config.policy, ()), config.context.template)


def _guide(config: RunConfig, env: Environment[Any]) -> list[str]:
    if config.context.style == "words":
        return []
    (task,) = sampled(env, 1, key(config.seed, "notices"))
    guide = guided(env, task)
    if guide.text or guide.tools:
        return []
    return [f"{env.name} has no guide: prompts do not say which actions exist; add Environment.guide"]


def _unread(config: RunConfig, env: Environment[Any], plays: bool) -> list[str]:
    """Say if a rule finds nothing to write in expert episodes, or what it finds has no room in a prompt.

    A model, a slow environment, or one without expert is not tried; ``alarm.idle`` reports an idle writer in any case.
    """
    bank = config.bank
    if bank is None:
        return []
    if asked_model(bank.writer) is not None or not (plays and env.has_expert):
        return [*without_room(config, env, ())]
    pool, draw = key_by(bank.key), key(config.seed, "notices", "writer")
    until, played = monotonic() + SECONDS, list[Episode]()
    for task in sampled(env, EPISODES, draw):
        tried = attempted(partial(episode, env, task, 0, extend(draw, task.id), noise=0.0))
        played += [] if isinstance(tried, EpisodeFailure) else [tried]
        if monotonic() > until:
            break
    if len(played) < LEAST:
        return [*without_room(config, env, ())]
    proposal = writer_of(bank.writer, pool).write(Evidence(played, Library(()), References(pool, 0), 0))
    if proposal.entries or proposal.edits:
        return [*without_room(config, env, proposal.entries)]
    found = f"bank.writer.type={bank.writer.type} finds nothing to write in {len(played)} episodes of {env.name}"
    if isinstance(bank.writer, OutsideWriterConfig):
        return [f"{found}: try another bank.writer.options, or another writer"]
    return [
        f"{found}: it quotes feedback that names the action and a word of the task; a model writes there, as "
        "bank.writer.type=model-contrast"
    ]


def _panels(config: RunConfig, env: Environment[Any]) -> list[str]:
    """Notices of training tasks and those of panels; nothing without an iteration."""
    if not config.iterations:
        return []
    trained, found = _trained(config, env), list[str]()
    for name in dict.fromkeys((*config.evaluation.panels, *config.evaluation.final_panels)):
        panel = asked(env, "panel", partial(env.panel, name, config.evaluation.tasks)).tasks
        found += [*leaked(name, trained, panel)]
        if env.panel_bank(name) is None:
            found += _unreached(config, name, trained, panel[:TASKS])
    return [*found, *_never(config, trained)]


def _scoped(config: RunConfig) -> bool:
    """Report whether a task is shown entries of its key alone.

    Discovery@k is left out: its later attempts read what the earlier wrote.
    """
    bank = config.bank
    return bank is not None and bank.retrieval.scoped and config.evaluation.discovery <= 1


def _unreached(config: RunConfig, name: str, trained: Sequence[Task], panel: Sequence[Task]) -> list[str]:
    """Say that a panel has no key of the bank in common with training: it would never be shown an entry."""
    bank = config.bank
    if bank is None or not _scoped(config) or _shared(bank.key, trained, panel):
        return []
    return [
        f"bank.key={bank.key}: no task of panel {name} has the key of a training task, so the bank "
        f"gives it no entry; set {_remedy(trained, panel)}"
    ]


def _never(config: RunConfig, trained: Sequence[Task]) -> list[str]:
    """Say that no two training tasks have the same key: a lesson would never be shown in training."""
    bank, (half, other) = config.bank, (trained[: len(trained) // 2], trained[len(trained) // 2 :])
    if bank is None or not _scoped(config) or len(trained) < 2 or _shared(bank.key, half, other):
        return []
    return [
        f"of {len(trained)} training tasks no two have the same bank.key={bank.key}, so that the bank shows hardly any "
        f"entry; set {_remedy(half, other)}"
    ]


def _trained(config: RunConfig, env: Environment[Any]) -> list[Task]:
    """Tasks of some batches like those of the run: an environment may have no more tasks than a batch."""
    count, draw = 1 if config.rollout.turns else config.rollout.tasks, key(config.seed, "notices", "keys")
    return [task for number in range(-(-TASKS // count)) for task in sampled(env, count, extend(draw, number))]


def _shared(what: str, trained: Sequence[Task], held_out: Sequence[Task]) -> bool:
    pool = key_by(what)
    return not {pool(task) for task in trained}.isdisjoint(map(pool, held_out))


def _remedy(trained: Sequence[Task], held_out: Sequence[Task]) -> str:
    """Settings under which the bank reaches held-out tasks."""
    keys = [f"bank.key={what}" for what in KEYS if _shared(what, trained, held_out)]
    return ", or ".join([*keys, "bank.retrieval.scoped=false"])


def greedy(config: RunConfig) -> Iterator[str]:
    """Say that draws are nearly equal where attempts at a task are compared with each other."""
    temperature, bank, update = config.rollout.sampling.temperature, config.bank, config.update
    if temperature > COLD or not config.iterations:
        return
    remedy = "set rollout.sampling.temperature=1.0"
    if update is not None:
        compared = "the attempts at a task are nearly equal, and an update learns from their difference"
        explored = "the policy repeats its likeliest answers, and an update learns from others"
        said = compared if update.advantage.grouped else explored
        yield f"at rollout.sampling.temperature={temperature:g} {said}: {remedy}"
    elif bank is not None and isinstance(bank.writer, QuoteContrastConfig | ModelContrastConfig):
        yield (
            f"at rollout.sampling.temperature={temperature:g} the attempts at a task are nearly equal, and "
            f"bank.writer.type={bank.writer.type} compares successes with failures: {remedy}"
        )


def crowded(config: RunConfig) -> Iterator[str]:
    """Say that threads have to share cores; their number is part of the run's identity, and stays."""
    threads, cores = config.rollout.engine.threads, usable_cores()
    if threads > cores:
        yield (
            f"rollout.engine.threads={threads} is more than the {cores} usable cores, so that threads wait for each "
            f"other; results stay those of {threads} threads: in a new run or a branch, set "
            f"rollout.engine.threads={cores}"
        )


def closed(config: RunConfig) -> Iterator[str]:
    """Say that no iteration shows the bank, by the number of iterations or the room of the prompt."""
    if config.bank is None:
        return
    warmup = config.bank.retrieval.warmup
    if 0 < config.iterations <= warmup:
        yield (
            f"bank.retrieval.warmup={warmup} shows no entry of the bank in iterations={config.iterations}: set "
            f"bank.retrieval.warmup={config.iterations // 2}, or more iterations"
        )


def without_room(config: RunConfig, env: Environment[object], written: Sequence[Entry]) -> Iterator[str]:
    """Say that no lesson fits the prompt's budget.

    Args:
        config: the run.
        env: its environment.
        written: lessons that its writer finds in expert episodes; without any, the shortest possible one is tried.
    """
    if config.bank is None:
        return
    tokenizer = tokenizer_of(config.policy, (*env.vocabulary, *CONTEXT_WORDS))
    wide = Context(config.context.model_copy(update={"experience_tokens": MAX_TOKENS}), tokenizer)
    sizes = [wide.size([entry], "") for entry in written or [SHORTEST]]
    budget = config.context.experience_tokens
    if min(sizes) > budget:
        lessons = f"each of {len(sizes)} lessons that the writer finds" if written else "any lesson"
        yield (
            f"context.experience_tokens={budget} leaves out {lessons}, the shortest of {min(sizes)} tokens: set "
            f"context.experience_tokens={max(sizes) * max(1, config.bank.retrieval.k)}"
        )


def leaked(name: str, trained: Iterable[Task], panel: Sequence[Task]) -> Iterator[str]:
    """Say that a panel holds training tasks; the gate of episodes stops a run that plays one."""
    shared = {task.id for task in trained} & {task.id for task in panel}
    if shared:
        yield (
            f"{len(shared)} of the {len(panel)} tasks of panel {name} are training tasks, which its figures would take "
            "for held-out ones, and the run stops when it draws one: sample must leave them out (coevo envs check)"
        )


def misrewarded(env: Environment[object], outcomes: Sequence[tuple[bool, float]]) -> Iterator[str]:
    """Say that success earns nothing, or that a return is out of the declared range, which stops a run.

    Args:
        env: environment of the episodes.
        outcomes: success and return of each.
    """
    low, high = env.reward_range
    wrong = next((earned for _, earned in outcomes if not low <= earned <= high), None)
    if wrong is not None:
        yield (
            f"an episode of {env.name} earns {wrong:g}, which is not between {low:g} and {high:g}, and the run stops "
            "there: scale the rewards, or set reward_range (env.reward_range, or an attribute of the class)"
        )
    count = unrewarded(outcomes, env.reward_range)
    if count:
        yield (
            f"{count} of {len(outcomes)} episodes of {env.name} succeed and earn no more than a failure, so that an "
            "update learns nothing of success: reward it in Environment.step"
        )
