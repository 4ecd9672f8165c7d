"""Success of revisions with its noise: intervals, the best revision, and the last one before a fall beyond noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from coevo.flows.history.history import headline_panel, trail
from coevo.lineage.revision.manifest import Manifest
from coevo.records.intervals import Interval, chance_of_losses, of_share
from coevo.tasks.publish.alarms import training_rate

CERTAIN = 0.05
"""Probability that a whole run without a change shows a fall between two of its evaluations."""


@dataclass(frozen=True)
class Fall:
    """A fall of held-out success beyond noise, from one evaluated revision to the next."""

    before: Manifest
    after: Manifest


def training_success(manifest: Manifest) -> Interval | None:
    """Training success over the tasks of a revision, with its 95 % interval; None if it was not recorded.

    Episodes of a group share their task, so that tasks count, not episodes.
    """
    rate = training_rate(manifest)
    if rate is None:
        return None
    # Imported on use: the import takes longer than most commands.
    from scipy.special import stdtrit

    half = float(stdtrit(rate.tasks - 1, 0.975)) * rate.variance(rate.mean) ** 0.5
    return Interval(rate.mean, max(0.0, rate.mean - half), min(1.0, rate.mean + half))


def held_out_success(manifest: Manifest) -> Interval | None:
    """Success on the headline panel, with its 95 % interval over tasks; None if the revision was not evaluated."""
    marks = _outcomes(manifest).replace("-", "")
    return of_share(marks.count("1") / len(marks), len(marks)) if marks else None


def best_revision(history: Sequence[Manifest]) -> Manifest | None:
    """Revision of the trail with the highest held-out success, the earliest of equal ones; None without any."""
    return max(evaluations(history), key=_success, default=None)


def best_before_last(history: Sequence[Manifest]) -> Manifest | None:
    """Best revision of the trail but for the last evaluated one; None without any."""
    return max(evaluations(history)[:-1], key=_success, default=None)


def evaluations(history: Sequence[Manifest]) -> list[Manifest]:
    """Revisions of the trail that were evaluated, oldest first."""
    return [each for each in trail(history) if held_out_success(each) is not None]


def same_tasks(history: Sequence[Manifest]) -> list[tuple[Manifest, Manifest]]:
    """Evaluated revisions of the trail, each with the next one if that played the same tasks."""
    return [(old, new) for old, new in pairwise(evaluations(history)) if _tasks(old) == _tasks(new)]


def last_fall(history: Sequence[Manifest]) -> Fall | None:
    """The last fall of the trail between two evaluations of the same tasks, by the sign test over all of them."""
    steps = same_tasks(history)
    falls = [Fall(old, new) for old, new in steps if _chance(old, new) * len(steps) < CERTAIN]
    return falls[-1] if falls else None


def _chance(old: Manifest, new: Manifest) -> float:
    return chance_of_losses(_outcomes(old), _outcomes(new))


def _success(manifest: Manifest) -> float:
    found = held_out_success(manifest)
    return -1.0 if found is None else found.mean


def _tasks(manifest: Manifest) -> tuple[str | None, int]:
    """Hash and number of the panel's tasks: evaluations that share both are paired."""
    return manifest.state["panels"].get(headline_panel(manifest)), len(_outcomes(manifest))


def _outcomes(manifest: Manifest) -> str:
    """``1``, ``0`` or ``-`` (lost) per task of the headline panel; empty if it was not played."""
    return str(manifest.state.get("outcomes", {}).get(headline_panel(manifest), ""))
