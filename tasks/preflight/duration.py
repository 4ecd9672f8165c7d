"""Duration of an iteration and of the whole run, by step; rough, since episodes are those of a random agent.

A session's first iteration is compared with the forecast for what it played (``report_pace``).
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from coevo.configs.bank.admission_config import OutsideAdmissionConfig, ReplayAdmissionConfig
from coevo.configs.bank.writer_model_config import FrozenWriterModelConfig, PolicyWriterModelConfig
from coevo.configs.placement_config import engine_pool, trainer_pool
from coevo.configs.policy_config import EndpointPolicyConfig
from coevo.configs.rollout.rollout_config import EngineConfig, VllmEngineConfig
from coevo.configs.run_config import RunConfig
from coevo.configs.threads import usable_cores
from coevo.models.capacity.devices import Machine, here
from coevo.models.capacity.footprint import optimizer, weights
from coevo.models.capacity.iteration_time import decoding, generator, on_host, storing, updating
from coevo.models.capacity.model_shape import ModelShape, shape_of
from coevo.records.episode import Turn
from coevo.tasks.preflight.memory import Lengths
from coevo.tasks.preflight.writing_time import asking, writing
from coevo.tasks.run.run_writer_model import writer_model_config

if TYPE_CHECKING:  # a forecast needs none of what a session loads
    from coevo.tasks.session import Session

CANDIDATES = 16
"""Tasks that a replay plays, for writers without a maximum of candidates."""
PLAYED = ("rollout", "judging", "evaluation", "sync")
"""Steps of the servers that generate."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Steps on other machines.

    Attributes:
        steps: their names.
        machines: the machines, with the setting that names them.
    """

    steps: tuple[str, ...]
    machines: str


def durations(
    config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths, turns: float
) -> dict[str, float]:
    """Mean seconds per iteration of each step that this machine computes.

    Args:
        config: the run.
        machine: machine of the run.
        shape: shape of its policy.
        lengths: tokens of prompts and answers.
        turns: turns of an episode.
    """
    away = {step for each in elsewhere(config, machine) for step in each.steps}
    spent = _all(config, machine, shape, lengths, turns)
    return {step: seconds for step, seconds in spent.items() if step not in away}


def remote(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths, turns: float) -> list[str]:
    """Steps of an iteration that other machines compute, and ``durations`` leaves out."""
    timed = durations(config, machine, shape, lengths, turns)
    return [step for step in _all(config, machine, shape, lengths, turns) if step not in timed]


def _all(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths, turns: float) -> dict[str, float]:
    """Mean seconds of each step, as if this machine computed all of them."""
    new = fresh(config, lengths, turns)

    def play(rows: float) -> float:
        if isinstance(config.policy, EndpointPolicyConfig):
            return rows  # of any speed, see ``elsewhere``
        return turns * decoding(shape, rows, new, lengths.answer, *generator(config.rollout.engine, machine))

    rows = config.rollout.tasks * config.rollout.group_size
    played = rows * (config.rollout.turns or turns) / turns
    spent = {"rollout": play(played), "judging": play(rows) * judged(config) / rows}
    panels = evaluated(config)
    spent["writing"] = writing(config, machine, shape, lengths, panels)
    spent["evaluation"] = play(config.evaluation.tasks) * panels
    if config.update is not None:
        whole = new if config.update.packing == "trie" else lengths.mean
        taught = rows * (config.rollout.turns or turns)
        spent["update"] = _updating(config, machine, shape, taught * (whole + lengths.answer))
        kept = optimizer(shape, config.update.critic is not None)
        spent["save"] = storing(weights(shape) + kept) / config.lineage.every
        if isinstance(config.rollout.engine, VllmEngineConfig):
            spent["sync"] = storing(weights(shape))
    return {step: seconds for step, seconds in spent.items() if seconds}


def fresh(config: RunConfig, lengths: Lengths, turns: float) -> float:
    """Mean tokens of a prompt that no earlier prompt of its episode begins with: the others are computed once.

    A conversation grows up to ``context.memory_length`` turns; then it starts again with the latest half of them, and
    grows by the other half. Prompts of another style count whole.
    """
    context = config.context
    if context.style != "conversation":
        return lengths.mean
    length = turns if context.memory_length is None else context.memory_length
    again = max(0.0, turns - length) / max(1.0, length / 2)
    return min(lengths.mean, (1 + again) * lengths.last / turns)


def judged(config: RunConfig) -> float:
    """Episodes of an iteration that admission replays, on average."""
    bank = config.bank
    if bank is None or not isinstance(bank.admission, ReplayAdmissionConfig):
        return 0.0
    most = getattr(bank.writer, "candidates", CANDIDATES)
    if (asked := asking(config)) is not None:
        most = min(most, asked.questions * getattr(bank.writer, "lessons", most))
    return 2 * bank.admission.replays * most / bank.every


def evaluated(config: RunConfig) -> float:
    """Panels that an iteration plays, on average."""
    evaluation, whole = config.evaluation, max(1, config.iterations)
    arms = 3 / (evaluation.internalization * config.lineage.every) if evaluation.internalization else 0.0
    last = 2 * len(evaluation.final_panels) / whole
    return len(evaluation.panels) * (1 / evaluation.every + 1 / whole + arms) + last


def _updating(config: RunConfig, machine: Machine, shape: ModelShape, tokens: float) -> float:
    update = config.update
    assert update is not None
    policy = 1 + update.optimizer.epochs * (4 if update.deepspeed.activation_checkpointing else 3)
    critic = 0 if update.critic is None else 1 + 3 * update.critic.optimizer.epochs
    here = on_host(config.rollout.engine, machine)
    on = machine.gpus[0] if update.deepspeed.device == "cuda" and machine.gpus else here
    processes = update.deepspeed.processes
    return updating(shape, tokens, on, policy + critic, processes)


def elsewhere(config: RunConfig, machine: Machine) -> list[Elsewhere]:
    """Steps on other machines; none on an assumed machine, which stands for these as well."""
    if isinstance(config.policy, EndpointPolicyConfig):
        writes = ("writing",) if isinstance(writer_model_config(config), PolicyWriterModelConfig) else ()
        return [Elsewhere((*PLAYED, *writes), f"policy.url={config.policy.url}")]
    return [] if machine.assumed else [*_served(config), *_on_nodes(config), *_trained(config)]


def untimed_steps(config: RunConfig, machine: Machine, steps: Collection[str]) -> Iterator[str]:
    """Notice of the steps of a run that other machines compute, one per setting that names these.

    Args:
        config: the run.
        machine: machine of the run.
        steps: steps that an iteration has.
    """
    for each in elsewhere(config, machine):
        *first, last = [step for step in steps if step in each.steps] or [""]
        if last:
            named, verb = (f"{', '.join(first)} and {last}", "are") if first else (last, "is")
            said = f"{named} {verb} not in the time, since {each.machines} may be of any speed"
            asked = isinstance(config.policy, EndpointPolicyConfig)
            yield said if asked else f"{said}: `--on MACHINE` estimates with a machine such as these"


def unknown_replays(config: RunConfig) -> Iterator[str]:
    """Notice of an admission from another package that replays as often as it likes."""
    admission = None if config.bank is None else config.bank.admission
    if isinstance(admission, OutsideAdmissionConfig) and admission.needs_replay:
        yield f"the replays of bank.admission.type={admission.type} are not in the time: it plays as many as it likes"


def _served(config: RunConfig) -> Iterator[Elsewhere]:
    engine, writer_model = config.rollout.engine, writer_model_config(config)
    writes = ("writing",)
    if urls := _urls(engine):
        asked = writes if isinstance(writer_model, PolicyWriterModelConfig) else ()
        yield Elsewhere((*PLAYED, *asked), f"rollout.engine.urls={urls}")
    if isinstance(writer_model, FrozenWriterModelConfig) and (urls := _urls(writer_model.engine)):
        yield Elsewhere(writes, f"bank.writer.model.engine.urls={urls}")


def _trained(config: RunConfig) -> Iterator[Elsewhere]:
    if config.update is not None and trainer_pool(config.placement) is not None:
        yield Elsewhere(("update",), "the nodes of placement.pools.trainer")


def _on_nodes(config: RunConfig) -> Iterator[Elsewhere]:
    if engine_pool(config.placement) is not None:
        yield Elsewhere(PLAYED, "the nodes of placement.pools.engines")


def _urls(engine: EngineConfig) -> str:
    """Servers that run elsewhere, as the command line names them; empty without any."""
    urls = engine.urls if isinstance(engine, VllmEngineConfig) else ()
    return f"[{','.join(urls)}]" if urls else ""


LATE_FACTOR, LATE_S = 3.0, 10.0
"""A stage is off if it takes so many times its forecast, which is rough, and so many seconds more."""
BUSY_LOAD_PER_CORE = 1.5
"""Load per usable core from which on other work is a reason."""


def report_pace(session: "Session") -> None:
    """Say which stages of a session's first iteration took far longer than their forecast, and why as far as known."""
    if session.paced:
        return
    session.paced = True
    turns = [turn for episode in session.ended for turn in episode.turns]
    if not turns:
        return
    trainer = session.parts.trainer
    spent = dict(session.seconds)
    if trainer is not None:
        spent["update"] = spent.get("update", 0.0) - trainer.waited
    words, root = len(session.parts.worker.engine.policy.tokenizer), session.stores.paths.root
    judged = session.pending.metrics.get("cost/judging/episodes", 0.0)
    wanted = foreseen(session.config, here(root), words, turns, len(session.ended), judged)
    reasons = " and ".join(why(session.config.rollout.engine.threads, usable_cores(), os.getloadavg()[0]))
    for line in late(spent, wanted, reasons):
        session.stores.reporter.warn(line)


def foreseen(
    config: RunConfig, machine: Machine, words: int, turns: Sequence[Turn], episodes: int, judged: float
) -> dict[str, float]:
    """Forecast seconds of an iteration's stages, with the prompts and answers that it had.

    Args:
        config: the run.
        machine: its machine, measured now.
        words: size of the policy's vocabulary.
        turns: turns of the iteration.
        episodes: number of its episodes.
        judged: number of episodes that admission replayed.
    """
    prompts = sorted(len(turn.prompt_ids) for turn in turns)
    middle = round(2 * fmean(prompts)) - prompts[0]  # with which the mean of both ends is that of the prompts
    answer = max(1, round(fmean(len(turn.completion.token_ids) for turn in turns)))
    lengths = Lengths(prompts[0], max(middle, prompts[0]), answer, prompts[-1])
    spent = durations(config, machine, shape_of(config.policy, words), lengths, len(turns) / max(1, episodes))
    found = {name: spent[name] for name in ("rollout",) if name in spent}
    if "update" in spent:
        saved = spent.get("save", 0.0) * config.lineage.every + spent.get("sync", 0.0)
        found["update"] = spent["update"] + saved
    if "rollout" in spent and judged:
        found["judge"] = spent["rollout"] * judged / max(1, episodes)
    return found


def late(spent: Mapping[str, float], wanted: Mapping[str, float], reasons: str) -> Iterator[str]:
    """Lines about stages that took far longer than their forecast."""
    for stage, forecast in wanted.items():
        took = spent.get(stage, 0.0)
        if took > LATE_FACTOR * forecast and took > forecast + LATE_S:
            known = reasons or "the reason is not known: compare with `coevo run --dry-run` on the idle machine"
            yield f"{stage} took {took:.0f} s, its forecast is {forecast:.1f} s: {known}"


def why(threads: int, cores: int, load: float) -> Iterator[str]:
    """Reasons why stages take longer than their forecast, as far as they can be seen."""
    if threads > cores:
        yield f"rollout.engine.threads={threads} share {cores} usable cores"
    if load > BUSY_LOAD_PER_CORE * cores:
        yield f"the machine is busy (load {load:.1f} on {cores} usable cores)"
