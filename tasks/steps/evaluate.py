"""Held-out measurements, the bank read-only: panels played once per task, and the internalization curve.

The curve (CoEvo-RL Fig. 6) is success with the bank's best entry, minus none and minus a random one, on the same tasks
with the same draws; the gates of retrieval do not apply. A gain that shrinks while success stays means that the policy
has learned what the entries say.

A failed episode says which part lessons had in it: not in the bank, not found, left out of the prompts, or not
followed. A lesson fits if its text holds every word of a note that the task needs, as the environment words it
(``Environment.needed``). A lesson that says the same in other words cannot be told from one that does not.
"""

import math
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from coevo.configs.bank.bank_config import BankConfig
from coevo.configs.base import MAX_TURNS
from coevo.envs.base import Environment
from coevo.envs.failures import EpisodeFailure, attempted, sound
from coevo.memory.retrieval.index import Index
from coevo.memory.vendi_score import diversity
from coevo.records.demonstration import Answer, Moment, Note
from coevo.records.draws import Key, extend, key
from coevo.records.episode import Episode, stored_bytes
from coevo.records.failure_reasons import failure_reason
from coevo.records.intervals import paired
from coevo.records.task import Panel, Task
from coevo.tasks.gates.environment_data import check_panel
from coevo.tasks.iteration.held_out import panel_of, play_panel
from coevo.tasks.iteration.reflect import panel_reflections
from coevo.tasks.iteration.retrieval_quality import retrieval_quality
from coevo.tasks.pending_revision import HeldOutEpisode, PanelOutcomes, Result, cost, under
from coevo.tasks.play.discovery_at_k import DiscoveryAgent, discover
from coevo.tasks.play.episode_metrics import check_losses, loss_metrics, outcome_metrics, report_losses
from coevo.tasks.play.lesson_use import lesson_use
from coevo.tasks.play.retrieve import NOTHING, Best, Experience, at_random, recall, with_lesson_scores
from coevo.tasks.play.turns import turn_by_turn
from coevo.tasks.session import Session
from coevo.tasks.stage import stage
from coevo.tasks.writing.ask_writer_model import aside_of
from coevo.utilities.errors import CoevoError

MIB = 2**20
REPEATS = 8
"""Episodes per task if the expert guesses; they cost almost nothing."""


@stage("evaluate")
def evaluate(session: Session) -> Result[dict[str, PanelOutcomes]]:
    """Outcomes of the panels that are due, with the policy and bank of the revision in the making."""
    outcomes, metrics = dict[str, PanelOutcomes](), retrieval_quality(session)
    for name in session.due.panels():
        panel = panel_of(session, name)
        index = panel_index(session.parts.env, name, session.shown_index(session.updates), session.config.bank)
        seen = recall(index, key(session.config.seed, "evaluate"))
        episodes = play_panel(session.parts.worker, panel, seen, session.config.seed, session.pending.revision)
        report_losses(session.stores.reporter, episodes, name)
        check_losses(episodes, session.config.rollout.lost_limit, name)
        metrics |= outcome_metrics(episodes, name) | discovery_metrics(session, panel, seen, episodes)
        metrics |= panel_reflections(session, name, episodes)
        scores = diversity(episodes, session.config.evaluation.encoder)
        metrics |= {f"agent/vendi/{name}/{side}": score for side, score in scores.items()}
        metrics |= blind_expert(session, panel) if session.is_new else {}
        solved = "".join("-" if each.lost else "01"[each.success] for each in episodes)
        outcomes[name] = PanelOutcomes(panel.hash, solved, kept_episodes(session, name, episodes, seen, index))
    writing = session.parts.writing
    if writing is None:
        return Result(outcomes, metrics)
    return Result(outcomes, metrics, writing.requests(), writing.cost_aside())


def kept_episodes(
    session: Session, panel: str, episodes: Sequence[Episode], seen: Experience, index: Index | None
) -> tuple[HeldOutEpisode, ...]:
    """The first episodes of a panel, as many as its share of ``lineage.held_out`` holds, with reasons of failures."""
    room = session.config.lineage.held_out * MIB // len(session.due.panels())
    sizes = accumulate(map(stored_bytes, episodes))
    fitting = [episode for episode, size in zip(episodes, sizes, strict=True) if size <= room]
    env, reworded = session.parts.env, session.parts.writing is not None

    def kept(episode: Episode) -> HeldOutEpisode:
        reason = failure_reason(episode)
        if reason is None:
            return HeldOutEpisode(panel, episode, "", "")
        needed = sound(attempted(partial(env.needed, episode.task)))
        use = lesson_use(episode, needed, index, seen, reworded)
        return HeldOutEpisode(panel, episode, reason, use)

    return tuple(map(kept, with_lesson_scores(fitting, seen)))


def discovery_metrics(session: Session, panel: Panel, seen: Experience, first: list[Episode]) -> dict[str, float]:
    """Shares of Discovery@k, and the losses of all attempts.

    Raises:
        CoevoError: the environment lost too many of the attempts after the first, or none of them has a turn.
    """
    attempts, name = session.config.evaluation.discovery, panel.name
    shares, later = discover(learner_of(session), panel, seen, first, attempts)
    report_losses(session.stores.reporter, later, f"{name}, later attempts")
    solved = [episode for episode in first if episode.success]
    check_losses([*solved, *later], session.config.rollout.lost_limit, f"{name}, later attempts")
    found = {f"bank/discovery/{name}/{number}": share for number, share in shares.items()}
    return loss_metrics([*first, *later], name) | found


def learner_of(session: Session) -> DiscoveryAgent:
    """Policy and bank of the revision in the making, for repeated attempts."""
    parts, bank, revision = session.parts, session.bank, session.pending.revision
    return DiscoveryAgent(
        session.config,
        parts.worker,
        parts.writer,
        start=bank,
        references=session.references,
        ask=aside_of(parts.writing, revision),
        revision=revision,
        iterations=session.updates,
    )


def blind_expert(session: Session, panel: Panel) -> dict[str, float]:
    """Success of the scripted expert without notes, the most that is possible without experience."""
    env = session.parts.env
    if not env.has_expert:
        return {}
    base, most = key(session.config.seed, "expert"), session.config.rollout.max_turns
    return {f"agent/expert/{panel.name}": expert_success(env, panel.tasks, base, most)}


def panel_index(env: Environment[object], panel: str, own: Index | None, bank: BankConfig | None) -> Index | None:
    """Index for a panel: over the run's bank, over the true entries of the panel's world, or None."""
    entries = env.panel_bank(panel)
    if entries is None:
        return own
    return Index(entries, (bank or BankConfig()).retrieval) if entries else None


def expert_success(env: Environment[object], tasks: Sequence[Task], key: Key, max_turns: int = MAX_TURNS) -> float:
    """Success rate of the scripted expert without notes, over several episodes per task if it guesses.

    Episodes that the environment loses are left out; 0 if it loses all.
    """
    repeats = REPEATS if env.expert_guesses else 1
    episodes = [
        attempted(partial(play_expert, env, task, (), extend(key, task.id, n), max_turns))
        for task in tasks
        for n in range(repeats)
    ]
    solved = [shown[-1][2] for shown in episodes if not isinstance(shown, EpisodeFailure)]
    return sum(solved) / max(1, len(solved))


def play_expert(
    env: Environment[object], task: Task, lessons: tuple[str, ...], key: Key, max_turns: int = MAX_TURNS
) -> list[tuple[Moment, Answer, bool]]:
    """Play one expert episode of at most ``max_turns``; return each moment, answer, and success."""
    guide, notes = sound(env.try_guide(task)), tuple(map(Note, lessons))

    def act(state: object, moment: Moment) -> Answer:
        return env.advise(state, moment, extend(key, len(moment.history)))

    played = turn_by_turn(env, task, guide, act, max_turns, notes)
    return [(turn.moment, turn.answer, turn.step.success) for turn in played]


@stage("internalization")
def internalize(session: Session) -> Result[None]:
    """Measure the gains on each panel of ``evaluation.panels`` that reads the run's bank; nothing if it is empty.

    Raises:
        CoevoError: no panel reads the run's bank, or the environment lost too many episodes.
    """
    panels, metrics, played = panels_of(session), dict[str, float](), list[Episode]()
    for panel in panels if session.bank.entries else ():
        arms = {name: _play(session, panel, name, seen) for name, seen in _arms(session, panel).items()}
        metrics |= gains(panel.name, {name: list(map(_success, episodes)) for name, episodes in arms.items()})
        played += [episode for episodes in arms.values() for episode in episodes]
    return Result(None, metrics, spent=under(cost(played), "internalization") if played else {})


def panels_of(session: Session) -> list[Panel]:
    """Panels of ``evaluation.panels`` that read the run's bank.

    Raises:
        CoevoError: there are none.
    """
    env, evaluation = session.parts.env, session.config.evaluation
    found = [panel_of(session, name) for name in evaluation.panels if env.panel_bank(name) is None]
    if not found:
        raise CoevoError(
            f"evaluation.internalization={evaluation.internalization} compares entries of the run's bank, which no "
            "panel of evaluation.panels reads: add one that does, or set evaluation.internalization=0"
        )
    return found


def gains(panel: str, success: dict[str, list[float]]) -> dict[str, float]:
    """Success with each kind of experience, and the gains of ``top1`` with their 95 % intervals over tasks.

    Args:
        panel: name of the panel.
        success: 1, 0 or NaN (lost) per task, for ``top1``, ``none`` and ``random``.
    """
    folder, metrics = f"bank/internalization/{panel}", dict[str, float]()
    for name, values in success.items():
        sound = [value for value in values if not math.isnan(value)]
        metrics |= {f"{folder}/{name}": sum(sound) / len(sound)} if sound else {}
    for other in ("none", "random"):
        pairs = [pair for pair in zip(success["top1"], success[other], strict=True) if not any(map(math.isnan, pair))]
        if len(pairs) > 1:
            gain, name = paired([a for a, _ in pairs], [b for _, b in pairs]), f"{folder}/top1_minus_{other}"
            metrics |= {name: gain.mean, f"{name}_low_over_tasks": gain.low, f"{name}_high_over_tasks": gain.high}
    return metrics


def _arms(session: Session, panel: Panel) -> dict[str, Experience]:
    seed, entries = session.config.seed, session.bank.entries
    return {
        "top1": Best(recall(session.index(), key(seed, "evaluate"))),
        "none": NOTHING,
        "random": at_random(entries, 1, panel.tasks, key(seed, "random entries")),
    }


def _play(session: Session, panel: Panel, arm: str, seen: Experience) -> Sequence[Episode]:
    episodes = play_panel(session.parts.worker, panel, seen, session.config.seed, session.pending.revision)
    report_losses(session.stores.reporter, episodes, f"{panel.name}, {arm}")
    check_losses(episodes, session.config.rollout.lost_limit, f"{panel.name}, {arm}")
    return episodes


def _success(episode: Episode) -> float:
    return math.nan if episode.lost else float(episode.success)


@stage("gate panels")
def gate_panels(session: Session) -> None:
    """Hold back a held-out panel that is due and is not what it should be."""
    for name in session.due.panels():
        check_panel(panel_of(session, name), session.stores.paths.quarantine)
