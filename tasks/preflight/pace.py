"""Pace of a session: its first iteration beside the forecast for what it played, by stage."""

import os
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from coevo.configs.run_config import RunConfig
from coevo.configs.threads import usable_cores
from coevo.models.capacity.devices import Machine, here
from coevo.models.capacity.model_shape import shape_of
from coevo.records.episode import Turn
from coevo.tasks.preflight.duration import durations
from coevo.tasks.preflight.memory import Lengths
from coevo.tasks.session import Session

FACTOR, LEAST = 3.0, 10.0
"""A stage is off if it takes so many times its forecast, which is rough, and so many seconds more."""
BUSY = 1.5
"""Load per usable core from which on other work is a reason."""


def report_pace(session: Session) -> None:
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
    words, root = len(session.parts.player.engine.policy.tokenizer), session.stores.paths.root
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
        if took > FACTOR * forecast and took > forecast + LEAST:
            known = reasons or "the reason is not known: compare with `coevo run --dry-run` on the idle machine"
            yield f"{stage} took {took:.0f} s, its forecast is {forecast:.1f} s: {known}"


def why(threads: int, cores: int, load: float) -> Iterator[str]:
    """Reasons why stages take longer than their forecast, as far as they can be seen."""
    if threads > cores:
        yield f"rollout.engine.threads={threads} share {cores} usable cores"
    if load > BUSY * cores:
        yield f"the machine is busy (load {load:.1f} on {cores} usable cores)"
