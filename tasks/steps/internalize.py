"""Internalization curve (CoEvo-RL Fig. 6): success with the bank's best entry, minus none and minus a random one.

All three are played on the same held-out tasks with the same draws. A gain that shrinks while success stays means that
the policy has learned what the entries say. The bank is read-only, and the gates of retrieval do not apply.
"""

import math
from collections.abc import Sequence

from coevo.records.draws import key
from coevo.records.episode import Episode
from coevo.records.intervals import paired
from coevo.records.task import Panel
from coevo.tasks.iteration.held_out import panel_of, play_panel
from coevo.tasks.pending_revision import Result, cost, under
from coevo.tasks.play.episode_metrics import check_losses, report_losses
from coevo.tasks.play.retrieve import NOTHING, Best, Experience, at_random, recall
from coevo.tasks.session import Session
from coevo.tasks.stage import stage
from coevo.utilities.errors import CoevoError


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
    episodes = play_panel(session.parts.player, panel, seen, session.config.seed, session.pending.revision)
    report_losses(session.stores.reporter, episodes, f"{panel.name}, {arm}")
    check_losses(episodes, session.config.rollout.lost_limit, f"{panel.name}, {arm}")
    return episodes


def _success(episode: Episode) -> float:
    return math.nan if episode.lost else float(episode.success)
