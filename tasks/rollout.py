"""Experience-conditioned rollouts: a group of N for every task, under one retrieved context (CoEvo-RL Eq. 5)."""

from collections.abc import Sequence
from functools import partial
from time import perf_counter

from records.draws import extend
from records.episode import Episode
from records.task import Task
from tasks.play import Attempt
from tasks.recognise import link_answers, recognise
from tasks.retrieval_metrics import retrieval_metrics, retrieval_rates
from tasks.retrieve import NOTHING, Experience, sees
from tasks.session import Session
from tasks.stage import stage


@stage("rollout")
def rollout(session: Session, tasks: Sequence[Task]) -> list[Episode]:
    """Play the batch with the current policy and bank; episodes in the order (task, replica)."""
    seen = session.experience(session.iteration)
    attempts = [
        _attempt(session, task, replica, seen) for task in tasks for replica in range(session.config.rollout.group_size)
    ]
    episodes = _recognised(session, session.parts.player.play(attempts), seen)
    session.draft.metrics |= outcome_metrics(episodes, "train") | _retrieval(session, episodes, seen)
    session.draft.rates |= retrieval_rates(seen)
    return episodes


def _attempt(session: Session, task: Task, replica: int, seen: Experience) -> Attempt:
    config, key = session.config, extend(session.key("rollout"), task.id, replica)
    told = config.bank is not None and sees(config.bank.retrieval, replica, config.rollout.group_size)
    shown = seen if told else NOTHING
    stage = f"rollout-{session.iteration}"
    recall = partial(shown.of_step, task)
    return Attempt(task, replica, shown.of_task(task), stage, session.draft.revision, key, recall)


def _recognised(session: Session, episodes: list[Episode], seen: Experience) -> list[Episode]:
    clusters, bank = session.clusters, session.config.bank
    if clusters is None:
        return episodes
    since = perf_counter()
    episodes = recognise(clusters, episodes)
    if bank is not None and bank.retrieval.type == "cluster":
        link_answers(clusters, episodes, seen)
    session.draft.rates["retrieval/cluster_seconds"] = perf_counter() - since
    session.draft.metrics["retrieval/clusters"] = float(len(clusters))
    return episodes


def _retrieval(session: Session, episodes: Sequence[Episode], seen: Experience) -> dict[str, float]:
    bank, group = session.config.bank, session.config.rollout.group_size
    if bank is None:
        return {}
    return retrieval_metrics(bank.retrieval, seen, episodes, group, session.parts.player.context.size)


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
