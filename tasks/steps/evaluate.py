"""Held-out measurement: panels played once per task, the bank read-only."""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from coevo.configs.bank.bank_config import BankConfig
from coevo.configs.rollout.rollout_config import MAX_TURNS
from coevo.envs.base import Environment
from coevo.envs.failures import EpisodeFailure, attempted, sound
from coevo.memory.retrieval.index import Index
from coevo.memory.vendi_score import diversity
from coevo.records.demonstration import Answer, Moment, Note
from coevo.records.draws import Key, extend, key
from coevo.records.episode import Episode, stored_bytes
from coevo.records.failure_reasons import failure_reason
from coevo.records.task import Panel, Task
from coevo.tasks.iteration.held_out import panel_of, play_panel
from coevo.tasks.iteration.reflect import panel_reflections
from coevo.tasks.iteration.retrieval_quality import retrieval_quality
from coevo.tasks.pending_revision import HeldOutEpisode, PanelOutcomes, Result
from coevo.tasks.play.discovery_at_k import DiscoveryAgent, discover
from coevo.tasks.play.episode_metrics import check_losses, loss_metrics, outcome_metrics, report_losses
from coevo.tasks.play.lesson_use import lesson_use
from coevo.tasks.play.retrieve import Experience, recall
from coevo.tasks.play.turns import turn_by_turn
from coevo.tasks.session import Session
from coevo.tasks.stage import stage
from coevo.tasks.writing.ask_writer_model import aside_of

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
        episodes = play_panel(session.parts.player, panel, seen, session.config.seed, session.pending.revision)
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

    return tuple(map(kept, fitting))


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
        parts.player,
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
