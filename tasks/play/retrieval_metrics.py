"""Metrics of the retrieval of a batch of rollouts."""

from collections.abc import Callable, Iterable, Sequence

from coevo.configs.bank.retrieval_config import AnyRetrievalConfig
from coevo.memory.retrieval.index import Hit
from coevo.records.entry import Entry
from coevo.records.episode import Episode, played
from coevo.records.task import Task
from coevo.tasks.play.retrieve import Experience, Retrieved, sees
from coevo.tasks.stage import part_name

EntrySize = Callable[[Sequence[Entry], str], int]
"""Function that returns the prompt tokens of a block of entries for an instruction."""


def retrieval_metrics(
    config: AnyRetrievalConfig, seen: Experience, episodes: Sequence[Episode], group: int, size: EntrySize
) -> dict[str, float]:
    """Metrics of one iteration that a repeated run reproduces.

    The mean best score is named after its scorer; metrics of optional settings appear only with these settings, and
    ``left_out`` only where entries were left out.
    """
    answers = seen.answers if isinstance(seen, Retrieved) else {"task": {}, "step": {}}
    hits = [*answers["task"].values(), *answers["step"].values()]
    figures = {f"bank/retrieval/{part_name(config.type)}_score": _mean([found[0].score for found in hits if found])}
    if config.per != "step":
        figures["bank/retrieval/task_hits"] = _hits(answers["task"].values())
    if config.per != "task":
        figures["bank/retrieval/step_hits"] = _hits(answers["step"].values())
        figures["bank/retrieval/step_tokens"] = _step_tokens(seen, episodes, size)
    if config.warmup or config.min_entries:
        figures["bank/retrieval/enabled"] = float(isinstance(seen, Retrieved))
    if isinstance(seen, Retrieved):
        figures |= {f"bank/retrieval/{what}": float(count) for what, count in seen.tally().items()}
    left = _left_out(config, seen, episodes, group)
    figures |= {"bank/retrieval/left_out": left} if left else {}
    return figures | (_halves(config, episodes, group) if config.share < 1 else {})


def retrieval_rates(seen: Experience) -> dict[str, float]:
    """Times in seconds, which vary between repeated runs."""
    if not isinstance(seen, Retrieved):
        return {}
    parts = {f"bank/retrieval/{part}_seconds": spent for part, spent in seen.parts().items()}
    return parts | {"bank/retrieval/seconds": seen.seconds}


def _halves(config: AnyRetrievalConfig, episodes: Sequence[Episode], group: int) -> dict[str, float]:
    """Success of the rollouts with the bank, and of those with the bare prompt."""
    episodes = played(episodes)
    told = [sees(config, episode.replica, group) for episode in episodes]
    sides = {
        side: [float(episode.success) for episode, sees_it in zip(episodes, told, strict=True) if sees_it == which]
        for side, which in (("conditioned", True), ("unconditioned", False))
    }
    return {"bank/retrieval/conditioned_share": _mean([float(each) for each in told])} | {
        f"bank/retrieval/{side}_success": _mean(outcomes) for side, outcomes in sides.items()
    }


def _step_tokens(seen: Experience, episodes: Sequence[Episode], size: EntrySize) -> float:
    """Mean prompt tokens per turn of entries for that turn only; lost episodes are left out."""
    added = [
        _added(seen, episode.task, turn.observation, size) if turn.retrieved else 0
        for episode in played(episodes)
        for turn in episode.turns
    ]
    return _mean(added)


def _left_out(config: AnyRetrievalConfig, seen: Experience, episodes: Sequence[Episode], group: int) -> float:
    """Mean retrieved entries per turn that exceed the budget of the prompt (``context.experience_tokens``)."""
    conditioned = [episode for episode in played(episodes) if sees(config, episode.replica, group)]
    turns = [(episode.task, turn) for episode in conditioned for turn in episode.turns]
    found = [{*seen.of_task(task), *seen.of_step(task, turn.observation)} for task, turn in turns]
    return _mean(
        [
            float(sum(entry.id not in turn.retrieved for entry in entries))
            for entries, (_, turn) in zip(found, turns, strict=True)
        ]
    )


def _added(seen: Experience, task: Task, observation: str, size: EntrySize) -> int:
    lasting = seen.of_task(task)
    added = (entry for entry in seen.of_step(task, observation) if entry not in lasting)
    return size([*lasting, *added], task.instruction) - size(lasting, task.instruction)


def _hits(answers: Iterable[list[Hit]]) -> float:
    return _mean([float(len(found)) for found in answers])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
