"""Parts of different sections that do not go together, each with the reason and the remedy."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from configs.compositions import ahead, experience, learning, placement, prompt, schedule

if TYPE_CHECKING:
    from configs.run import RunConfig


def flaws(config: "RunConfig") -> Iterator[str]:
    """What keeps the parts of a run from working together, one line a flaw."""
    for section in (schedule, learning, experience, prompt, placement, ahead):
        yield from section.flaws(config)
