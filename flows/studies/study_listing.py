"""List of studies: what each claims, how many episodes it plays, and what is missing for it here."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from coevo.configs.load.load_study import configured
from coevo.configs.run_config import RunConfig
from coevo.configs.study_config import StudyConfig

COLUMNS = ("name", "paper", "figure", "finding", "arms", "seeds", "episodes", "needs")


def listed(studies: Sequence[StudyConfig]) -> Iterator[dict[str, Any]]:
    """One row per study, with the ``COLUMNS``.

    ``episodes``: planned training episodes of all runs, without replays; None for a study that cannot run.
    """
    for study in studies:
        configs = [] if study.needs else [configured(study, arm, 1) for arm in study.arms]
        yield {
            "name": study.name,
            "paper": study.paper,
            "figure": study.figure,
            "finding": study.finding,
            "arms": len(study.arms) or None,
            "seeds": study.seeds if configs else None,
            "episodes": study.seeds * sum(map(episodes, configs)) if configs else None,
            "needs": "; ".join([*study.needs, *_extras(configs)]) or None,
        }


def episodes(config: RunConfig) -> int:
    """Training episodes that a run plans: iterations x tasks x group."""
    return config.iterations * config.rollout.tasks * config.rollout.group_size


def _extras(configs: Sequence[RunConfig]) -> Iterator[str]:
    embeds = any(
        "embedding" in config.bank.retrieval.model_dump_json() for config in configs if config.bank is not None
    )
    if embeds and find_spec("sentence_transformers") is None:
        yield "pip install 'coevo[embedding]'"
