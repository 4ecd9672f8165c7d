"""Experience-conditioned rollouts: a group of N for every task, under one retrieved context (CoEvo-RL Eq. 5)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

from records.draws import extend
from records.episode import Episode
from records.task import Task
from tasks.play import Attempt
from tasks.recognise import link_answers, recognise
from tasks.retrieval_metrics import retrieval_metrics, retrieval_rates
from tasks.retrieve import NOTHING, Experience, sees
from tasks.sample import draw
from tasks.session import Session
from tasks.slots import Plan
from tasks.spend import spend
from tasks.stage import stage


@stage("rollout")
def rollout(session: Session, tasks: Sequence[Task]) -> list[Episode]:
    """Play the batch with the current policy and bank; episodes in the order (task, replica).

    With ``rollout.turns``, that many turns of each parallel environment: what of episodes was played in them, in the
    order (slot, time). Outcomes are those of the episodes that ended.
    """
    seen = session.experience(session.iteration)
    turns = session.config.rollout.turns
    played = _batch(session, tasks, seen) if turns is None else _slice(session, turns, seen)
    episodes = _recognised(session, played, seen)
    spend(session, episodes)
    session.draft.metrics |= _outcomes(session, episodes) | _retrieval(session, episodes, seen)
    session.draft.rates |= retrieval_rates(seen)
    return episodes


def _batch(session: Session, tasks: Sequence[Task], seen: Experience) -> list[Episode]:
    group = range(session.config.rollout.group_size)
    return session.parts.player.play([_attempt(session, task, n, seen) for task in tasks for n in group])


def _slice(session: Session, turns: int, seen: Experience) -> list[Episode]:
    def fresh(slot: int, number: int) -> Attempt:
        task = draw(session, slot, number)
        key = extend(session.key("rollout"), task.id, slot, number)
        return Attempt(task, 0, (), f"rollout-{session.iteration}.{slot}.{number}", session.draft.revision, key)

    def show(attempt: Attempt) -> Attempt:
        return replace(attempt, entries=seen.of_task(attempt.task), recall=partial(seen.of_step, attempt.task))

    return session.slots.play(session.parts.player, Plan(session.config.rollout.tasks, turns, fresh, show))


def _outcomes(session: Session, episodes: Sequence[Episode]) -> dict[str, float]:
    ended = [session.slots.whole(episode) for episode in episodes if not episode.following]
    figures = outcome_metrics(ended, "train") if ended else {}
    if session.config.rollout.turns is None:
        return figures
    return figures | {"rollout/ended": float(len(ended)), "rollout/cut": float(len(episodes) - len(ended))}


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
