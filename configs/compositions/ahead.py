"""Rollouts beside the update, and what they cannot be beside."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from configs.placement import SharedPlacement

if TYPE_CHECKING:
    from configs.run import RunConfig


def flaws(config: "RunConfig") -> Iterator[str]:
    """What keeps the next batch from being played beside the update."""
    if not config.rollout.ahead:
        return
    if config.update is None:
        yield "rollout.ahead=1 plays beside an update, and update=null has none: set rollout.ahead=0"
    elif config.update.loss.importance_cap is None:
        yield (
            "rollout.ahead=1 learns from what the policy before the last update has played: correct for that with "
            "update.loss.importance_cap=2.0, or set rollout.ahead=0"
        )
    if config.rollout.turns is not None:
        yield (
            "rollout.turns goes on with the last batch's episodes, and rollout.ahead=1 plays whole ones: set "
            "rollout.turns=null, or rollout.ahead=0"
        )
    if isinstance(config.placement, SharedPlacement):
        yield (
            "placement.type=shared has the servers sleep during the update, which is when rollout.ahead=1 plays: set "
            "placement.type=separate, or rollout.ahead=0"
        )
