"""Experience-conditioned rollouts: a group of N for every task, under one retrieved context (CoEvo-RL Eq. 5)."""

from collections.abc import Sequence

from records.draws import Key, extend
from records.episode import Episode
from records.task import Task
from tasks.play import Attempt
from tasks.retrieve import retrieve
from tasks.session import Session
from tasks.stage import stage


@stage("rollout")
def rollout(session: Session, tasks: Sequence[Task]) -> list[Episode]:
    """Play the batch with the current policy and bank; episodes in the order (task, replica)."""
    context = retrieve(session.index, tasks)
    key = session.key("rollout")
    attempts = [
        Attempt(
            task,
            replica,
            context[task.id],
            f"rollout-{session.iteration}",
            session.draft.revision,
            _key(key, task, replica),
        )
        for task in tasks
        for replica in range(session.config.rollout.group_size)
    ]
    episodes = session.parts.player.play(attempts)
    session.draft.metrics |= outcome_metrics(episodes, "train")
    return episodes


def _key(base: Key, task: Task, replica: int) -> Key:
    return extend(base, task.id, replica)


def outcome_metrics(episodes: Sequence[Episode], panel: str) -> dict[str, float]:
    """Success, reward and length of a batch, by panel."""
    count = len(episodes)
    turns = [turn for episode in episodes for turn in episode.turns]
    return {
        f"success/{panel}": sum(episode.success for episode in episodes) / count,
        f"reward/{panel}": sum(episode.reward for episode in episodes) / count,
        f"turns/{panel}": len(turns) / count,
        f"truncated/{panel}": sum(episode.truncated for episode in episodes) / count,
        f"invalid/{panel}": sum(not turn.valid for turn in turns) / len(turns),
    }
