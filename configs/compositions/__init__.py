"""Checks across sections: parts that cannot work together, each with the reason and the remedy."""

from collections.abc import Iterator

from coevo.configs.compositions import author, experience, learning, placement, rollout, schedule
from coevo.configs.sections import RunSections


def flaws(config: RunSections) -> Iterator[str]:
    """Conflicts between the sections of a run, one line each."""
    for section in (schedule, learning, experience, author, placement, rollout):
        yield from section.flaws(config)
