"""List of studies: what each claims, what it costs, and what is missing for it here."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.util import find_spec
from typing import Any

from coevo.configs.errors import CoevoError
from coevo.configs.load.study import configured
from coevo.configs.run import RunConfig
from coevo.configs.study import StudyConfig
from coevo.envs.registry import make
from coevo.models.capacity.devices import here
from coevo.tasks.preflight.forecast import forecast
from coevo.tasks.preflight.rehearse import Rehearsal, rehearse

COLUMNS = ("name", "paper", "figure", "finding", "arms", "seeds", "episodes", "hours", "needs")


def listed(studies: Sequence[StudyConfig]) -> Iterator[dict[str, Any]]:
    """One row per study, with the ``COLUMNS``.

    ``episodes``: planned training episodes of all runs, without replays. ``hours``: rough forecast for this machine.
    Both are None for a study that cannot run.
    """
    known: dict[str, Rehearsal] = {}
    for study in studies:
        configs = [] if study.needs else [configured(study, arm, 1) for arm in study.arms]
        needs, hours = [*study.needs, *_extras(configs)], None
        if configs and not needs:
            try:
                hours = study.seeds * sum(_hours(config, known) for config in configs)
            except CoevoError as error:
                needs.append(str(error))
        yield {
            "name": study.name,
            "paper": study.paper,
            "figure": study.figure,
            "finding": study.finding,
            "arms": len(study.arms) or None,
            "seeds": study.seeds if configs else None,
            "episodes": study.seeds * sum(map(episodes, configs)) if configs else None,
            "hours": None if hours is None else round(hours, 1),
            "needs": "; ".join(needs) or None,
        }


def episodes(config: RunConfig) -> int:
    """Training episodes that a run plans: iterations x tasks x group."""
    return config.iterations * config.rollout.tasks * config.rollout.group_size


def _hours(config: RunConfig, known: dict[str, Rehearsal]) -> float:
    """Forecast of a run. Runs of equal prompts share the rehearsal, which takes longest.

    Raises:
        CoevoError: the run cannot start here.
    """
    key = f"{config.env.model_dump_json()} {config.context.model_dump_json()} {config.bank is None}"
    if key not in known:
        with closing(make(config.env)) as env:
            known[key] = rehearse(config, env)
    found = forecast(config, known[key], here())
    if found.problems:
        raise CoevoError(found.problems[0])
    return config.iterations * sum(found.seconds.values()) / 3600


def _extras(configs: Sequence[RunConfig]) -> Iterator[str]:
    embeds = any(
        "embedding" in config.bank.retrieval.model_dump_json() for config in configs if config.bank is not None
    )
    if embeds and find_spec("sentence_transformers") is None:
        yield "pip install 'coevo[embedding]'"
