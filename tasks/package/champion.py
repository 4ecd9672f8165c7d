"""The champion of a registered model: a version is promoted only if it plays better on the same held-out tasks.

Both versions play the panel in this process, each with its own policy and bank and with the same draws; banks are
read-only. The alias moves if the 95 % interval of the paired difference lies above the margin, or if the model has no
champion yet. The model records its champions, so that the previous one can be restored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from filelock import FileLock

from coevo.envs.base import Environment
from coevo.models.policy.language_model import Policy
from coevo.records.draws import key
from coevo.records.episode import Episode
from coevo.records.intervals import paired
from coevo.records.task import Panel
from coevo.tasks.iteration.held_out import play_panel
from coevo.tasks.package.model_registry import Registered
from coevo.tasks.package.package import Package
from coevo.tasks.play.retrieve import recall
from coevo.tasks.publish.mlflow.tracking_store import TrackingStore, reached
from coevo.tasks.run.approval import Vote
from coevo.tasks.run.assemble import worker_of
from coevo.tasks.steps.evaluate import panel_index
from coevo.utilities.errors import CoevoError

CHAMPION = "champion"
HISTORY = "coevo.champions"
"""Tag of a model with its champions, oldest first and the current one last."""
ASKS = "coevo.promotion"
"""Tag of a version whose promotion needs a person's approval."""
APPROVAL = "coevo.approval"
"""Tag of a version that passed its gate: ``waiting``, or the person's decision."""
OVER = "coevo.approval.over"
"""Tag with the champion that the version would replace; empty without one."""
BY = "coevo.approval.by"
"""Tag with the name of the person who decided."""


@dataclass(frozen=True, slots=True)
class PromotionVerdict:
    """Result of a version against the champion.

    Attributes:
        panel: panel that both played.
        success: success rate of the version.
        against: success rate of the champion.
        difference: mean paired difference.
        low: lower bound of its 95 % interval.
        high: upper bound of its 95 % interval.
        margin: bound that ``low`` has to exceed.
    """

    panel: Panel
    success: float
    against: float
    difference: float
    low: float
    high: float
    margin: float

    @property
    def passed(self) -> bool:
        """Report whether the version replaces the champion."""
        return self.low > self.margin

    def sentence(self, challenger: str, champion: str) -> str:
        """Format the verdict as one line."""
        interval = f"{self.difference:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"
        return (
            f"{self.panel.name}, {len(self.panel.tasks)} tasks: {challenger} {self.success:.3f}, "
            f"{champion} {self.against:.3f}, difference {interval} over tasks; to exceed {self.margin:+.3f}"
        )

    def document(self) -> dict[str, object]:
        """Return the verdict as JSON values."""
        numbers = {name: getattr(self, name) for name in ("success", "difference", "low", "high", "margin")}
        panel = {"panel": self.panel.name, "tasks": len(self.panel.tasks), "panel_hash": self.panel.hash}
        return {**panel, **numbers, "champion_success": self.against}


@dataclass(frozen=True, slots=True)
class PendingVersion:
    """A version that passed its gate and is pending approval.

    Attributes:
        version: the version.
        over: champion that it would replace, or None.
        gate: results of its gate, by tag.
    """

    version: Registered
    over: int | None
    gate: Mapping[str, str]


def played(package: Package, env: Environment[object], panel: Panel, seed: int) -> list[Episode]:
    """Episodes of the packaged agent on a panel, by task; equal to those of an evaluation with this seed."""
    policy: Policy = package.policy()
    index = panel_index(env, panel.name, package.index(), package.config.bank)
    seen = recall(index, key(seed, "evaluate"))
    worker = worker_of(package.config, env, policy)
    return play_panel(worker, panel, seen, seed, package.origin.revision)


def judge(panel: Panel, mine: Sequence[bool], theirs: Sequence[bool], margin: float) -> PromotionVerdict:
    """Compare outcomes task by task; both sides played the panel with the same draws."""
    gain = paired(mine, theirs)
    return PromotionVerdict(panel, fmean(mine), fmean(theirs), gain.mean, gain.low, gain.high, margin)


def champion(store: TrackingStore, model: str) -> int | None:
    """Version that is champion, or None.

    Raises:
        CoevoError: the model does not exist.
    """
    with reached(store, "does not answer") as registry:
        return _current(registry.get_registered_model(model))


def make_champion(
    store: TrackingStore, challenger: Registered, over: int | None, verdict: PromotionVerdict | None
) -> None:
    """Make a version the champion.

    Args:
        store: MLflow's store.
        challenger: version to promote.
        over: champion that it was judged against, or None.
        verdict: result of its gate; None without a champion.

    Raises:
        CoevoError: the model has another champion now.
    """
    with reached(store, "does not move the alias") as registry, FileLock(store.lock):
        model = registry.get_registered_model(challenger.model)
        if _current(model) != over:
            raise CoevoError(f"{challenger.model}: its champion is now version {_current(model)}: promote again")
        _move_alias(registry, challenger.model, [*_history(model), challenger.version])
    if verdict is not None:
        record(store, challenger, over, verdict)


def record(store: TrackingStore, challenger: Registered, over: int | None, verdict: PromotionVerdict) -> None:
    """Record the result of a version's gate as tags, passed or not."""
    said = {
        "panel": f"{verdict.panel.name} ({len(verdict.panel.tasks)} tasks, {verdict.panel.hash[:16]})",
        "against": over,
        "difference": f"{verdict.difference:+.4f} [{verdict.low:+.4f}, {verdict.high:+.4f}]",
        "passed": verdict.passed,
    }
    with reached(store, "does not take the verdict") as registry:
        for name, value in said.items():
            registry.set_model_version_tag(challenger.model, str(challenger.version), f"coevo.gate.{name}", str(value))


def needs_a_person(store: TrackingStore, challenger: Registered) -> bool:
    """Report whether the recipe that trained a version requires a person's approval of its promotion."""
    return _tags(store, challenger).get(ASKS) == "person"


def ask(store: TrackingStore, challenger: Registered, over: int | None, verdict: PromotionVerdict | None) -> None:
    """Mark a version that passed its gate as pending approval."""
    if verdict is not None:
        record(store, challenger, over, verdict)
    for name, value in ((OVER, "" if over is None else str(over)), (APPROVAL, "waiting")):
        _tag(store, challenger, name, value)


def asked(store: TrackingStore) -> list[PendingVersion]:
    """Versions pending approval, by model and version."""
    with reached(store, "does not answer") as registry:
        found = registry.search_model_versions(f"tags.`{APPROVAL}` = 'waiting'")
    waiting = [_asked(Registered(each.name, int(each.version)), each.tags) for each in found]
    return sorted(waiting, key=lambda each: (each.version.model, each.version.version))


def check_pending(store: TrackingStore, challenger: Registered) -> Mapping[str, str]:
    """Check that a version is pending approval; return its tags.

    Raises:
        CoevoError: it is not.
    """
    tags = _tags(store, challenger)
    if tags.get(APPROVAL) != "waiting":
        raise CoevoError(f"{challenger.name} has nothing to approve; `coevo approve --list` shows what is pending")
    return tags


def settle(store: TrackingStore, challenger: Registered, vote: Vote) -> None:
    """Carry out a person's decision; repeat the call after an interruption.

    Raises:
        CoevoError: the version is not pending, or the model has another champion now.
    """
    tags = check_pending(store, challenger)
    if vote.approved and champion(store, challenger.model) != challenger.version:
        make_champion(store, challenger, _asked(challenger, tags).over, None)
    _tag(store, challenger, BY, vote.by)
    _tag(store, challenger, APPROVAL, "approved" if vote.approved else "rejected")


def previous(store: TrackingStore, model: str) -> Registered:
    """The champion before the current one.

    Raises:
        CoevoError: the model had no previous champion.
    """
    with reached(store, "does not answer") as registry:
        return Registered(model, _former(registry, model)[-2])


def restore(store: TrackingStore, model: str) -> Registered:
    """Restore the previous champion, which has passed its gate before.

    Raises:
        CoevoError: the model had no previous champion.
    """
    with reached(store, "does not move the alias") as registry, FileLock(store.lock):
        history = _former(registry, model)
        _move_alias(registry, model, history[:-1])
    return Registered(model, history[-2])


def _former(registry: Any, model: str) -> list[int]:
    """Champions of a model, at least two."""
    history = _history(registry.get_registered_model(model))
    if len(history) < 2:
        raise CoevoError(f"{model}: no version was champion before {history[-1] if history else 'any'}; leave it")
    return history


def _current(model: Any) -> int | None:
    return int(model.aliases[CHAMPION]) if CHAMPION in model.aliases else None


def _history(model: Any) -> list[int]:
    """Champions in order; an alias that other tools set or removed counts as it is now."""
    kept = [_number(HISTORY, text) for text in model.tags.get(HISTORY, "").split()]
    now = _current(model)
    return kept if now is None or kept[-1:] == [now] else [*kept, now]


def _move_alias(registry: Any, model: str, history: Sequence[int]) -> None:
    registry.set_registered_model_alias(model, CHAMPION, str(history[-1]))
    registry.set_registered_model_tag(model, HISTORY, " ".join(map(str, history)))


def _asked(version: Registered, tags: Mapping[str, str]) -> PendingVersion:
    gate = {name.removeprefix("coevo.gate."): said for name, said in tags.items() if name.startswith("coevo.gate.")}
    return PendingVersion(version, _number(OVER, tags[OVER]) if tags.get(OVER) else None, gate)


def _number(tag: str, text: str) -> int:
    """A version in a tag, which others may have written."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise CoevoError(f"the tag {tag} names no version ({text[:40]!a}): correct it on MLflow's pages")
    return int(text)


def _tags(store: TrackingStore, version: Registered) -> Mapping[str, str]:
    with reached(store, "does not answer") as registry:
        found: Mapping[str, str] = registry.get_model_version(version.model, str(version.version)).tags
    return found


def _tag(store: TrackingStore, version: Registered, name: str, value: str) -> None:
    with reached(store, "does not take the decision") as registry:
        registry.set_model_version_tag(version.model, str(version.version), name, value)
