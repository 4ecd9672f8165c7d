"""What learning has cost: episodes and tokens played for it, replays included, held-out evaluation not.

Kept in the manifest, so that runs can be compared at equal expense long after.
"""

from collections.abc import Sequence

from records.episode import Episode
from tasks.session import Session


def spend(session: Session, episodes: Sequence[Episode]) -> None:
    """Add episodes, or parts of them, to what the revision in the making has cost.

    An episode counts where it ends. Tokens are those of every prompt and of every completion: experience that is shown
    costs too.
    """
    turns = [turn for episode in episodes for turn in episode.turns]
    cost = {
        "spent/episodes": sum(not episode.following for episode in episodes),
        "spent/tokens": sum(len(turn.prompt_ids) + len(turn.completion.token_ids) for turn in turns),
    }
    metrics = session.draft.metrics
    metrics.update({name: metrics.get(name, 0.0) + count for name, count in cost.items()})
