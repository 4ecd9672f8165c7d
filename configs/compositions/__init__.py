"""Checks across sections: parts that cannot work together, each with the reason and the remedy."""

from collections.abc import Iterator

from coevo.configs.compositions import (
    endpoint_conflicts,
    experience,
    learning,
    rollout_conflicts,
    schedule_conflicts,
    writer_model_conflicts,
)
from coevo.configs.sections import RunSections


def flaws(config: RunSections) -> Iterator[str]:
    """Conflicts between the sections of a run, one line each."""
    for section in (
        schedule_conflicts,
        endpoint_conflicts,
        learning,
        experience,
        writer_model_conflicts,
        rollout_conflicts,
    ):
        yield from section.flaws(config)
