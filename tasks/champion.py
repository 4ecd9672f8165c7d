"""The champion of a registered model: a version takes its place only if it plays better on the same held-out tasks.

Both sides play the panel in this process, each with its own policy and bank and with the same draws; banks are only
read. The alias moves where the 95 % interval of the paired difference lies above the margin, or where there is no
champion yet. Which versions have been champion is kept with the model, so that the one before can be brought back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from filelock import FileLock

from configs.errors import CoevoError
from envs.base import Environment
from models.policy import Policy
from records.draws import key
from records.episode import Episode
from records.task import Panel
from tasks.assemble import player_of
from tasks.evaluate import panel_index, play_panel
from tasks.package import Package
from tasks.registry import Registered
from tasks.retrieve import recall
from tasks.tracking.store import Store, reached
from tasks.waiting import Vote

CHAMPION = "champion"
REIGNS = "coevo.champions"
"""Tag of a model with the versions that were champion, oldest first and the present one last."""
ASKS = "coevo.promotion"
"""Tag of a version whose promotion waits for a person."""
APPROVAL = "coevo.approval"
"""Tag of a version that has passed its gate and waits, or of which a person has decided."""
OVER = "coevo.approval.over"
"""Tag with the champion that it is to follow; empty where there is none."""
BY = "coevo.approval.by"
"""Tag with who has decided."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a version did against the champion.

    Attributes:
        panel: what both played.
        success: of the version.
        against: success of the champion.
        difference: their mean paired difference.
        low: lower bound of its 95 % interval.
        high: upper bound.
        margin: what ``low`` has to exceed.
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
        """Whether the version takes the champion's place."""
        return self.low > self.margin

    def sentence(self, challenger: str, champion: str) -> str:
        """In words."""
        interval = f"{self.difference:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"
        return (
            f"{self.panel.name}, {len(self.panel.tasks)} tasks: {challenger} {self.success:.3f}, "
            f"{champion} {self.against:.3f}, difference {interval}; to exceed {self.margin:+.3f}"
        )

    def document(self) -> dict[str, object]:
        """As JSON values."""
        numbers = {name: getattr(self, name) for name in ("success", "difference", "low", "high", "margin")}
        panel = {"panel": self.panel.name, "tasks": len(self.panel.tasks), "panel_hash": self.panel.hash}
        return {**panel, **numbers, "champion_success": self.against}


@dataclass(frozen=True, slots=True)
class Asked:
    """A version that has passed its gate and waits for a person.

    Attributes:
        version: the version.
        over: the champion that it is to follow; None where there is none.
        gate: what its gate said, by tag.
    """

    version: Registered
    over: int | None
    gate: Mapping[str, str]


def played(package: Package, env: Environment[object], panel: Panel, seed: int) -> list[Episode]:
    """The packaged agent's episodes on a panel, by task; an evaluation with this seed has the same."""
    policy: Policy = package.policy()
    index = panel_index(env, panel.name, package.index(), package.config.bank)
    seen = recall(index, key(seed, "evaluate"))
    player = player_of(package.config, env, policy)
    return play_panel(player, panel, seen, seed, package.origin.revision)


def judge(panel: Panel, mine: Sequence[bool], theirs: Sequence[bool], margin: float) -> Verdict:
    """Compare outcomes task by task; both sides played the panel with the same draws."""
    gains = [int(a) - int(b) for a, b in zip(mine, theirs, strict=True)]
    half = 1.96 * stdev(gains) / len(gains) ** 0.5
    difference = mean(gains)
    return Verdict(panel, mean(mine), mean(theirs), difference, difference - half, difference + half, margin)


def champion(store: Store, model: str) -> int | None:
    """The version that is champion; None where there is none.

    Raises:
        CoevoError: there is no such model.
    """
    with reached(store, "does not answer") as registry:
        return _reigning(registry.get_registered_model(model))


def crown(store: Store, challenger: Registered, over: int | None, verdict: Verdict | None) -> None:
    """Move the alias to a version.

    Args:
        store: MLflow's.
        challenger: the version.
        over: the champion that it was judged against.
        verdict: how it did; None where there was nobody to beat.

    Raises:
        CoevoError: the champion is another one by now.
    """
    with reached(store, "does not move the alias") as registry, FileLock(store.lock):
        model = registry.get_registered_model(challenger.model)
        if _reigning(model) != over:
            raise CoevoError(f"{challenger.model}: its champion is now version {_reigning(model)}: promote again")
        _enthrone(registry, challenger.model, [*_reigns(model), challenger.version])
    if verdict is not None:
        record(store, challenger, over, verdict)


def record(store: Store, challenger: Registered, over: int | None, verdict: Verdict) -> None:
    """Keep with a version how it did, whether it passed or not."""
    said = {
        "panel": f"{verdict.panel.name} ({len(verdict.panel.tasks)} tasks, {verdict.panel.hash[:16]})",
        "against": over,
        "difference": f"{verdict.difference:+.4f} [{verdict.low:+.4f}, {verdict.high:+.4f}]",
        "passed": verdict.passed,
    }
    with reached(store, "does not take the verdict") as registry:
        for name, value in said.items():
            registry.set_model_version_tag(challenger.model, str(challenger.version), f"coevo.gate.{name}", str(value))


def needs_a_person(store: Store, challenger: Registered) -> bool:
    """Whether a person is to decide about a version, as the recipe says that it was trained by."""
    return _tags(store, challenger).get(ASKS) == "person"


def ask(store: Store, challenger: Registered, over: int | None, verdict: Verdict | None) -> None:
    """Let a version that has passed its gate wait for a person."""
    if verdict is not None:
        record(store, challenger, over, verdict)
    for name, value in ((OVER, "" if over is None else str(over)), (APPROVAL, "waiting")):
        _tag(store, challenger, name, value)


def asked(store: Store) -> list[Asked]:
    """The versions that wait, by model and version."""
    with reached(store, "does not answer") as registry:
        found = registry.search_model_versions(f"tags.`{APPROVAL}` = 'waiting'")
    waiting = [_asked(Registered(each.name, int(each.version)), each.tags) for each in found]
    return sorted(waiting, key=lambda each: (each.version.model, each.version.version))


def settle(store: Store, challenger: Registered, vote: Vote) -> None:
    """Carry a person's decision out; once more does no harm where it was interrupted.

    Raises:
        CoevoError: the version does not wait, or the champion is another one by now.
    """
    tags = _tags(store, challenger)
    if tags.get(APPROVAL) != "waiting":
        raise CoevoError(f"{challenger.name} waits for nobody: see what does with `coevo approve --list`")
    if vote.approved and champion(store, challenger.model) != challenger.version:
        crown(store, challenger, _asked(challenger, tags).over, None)
    _tag(store, challenger, BY, vote.by)
    _tag(store, challenger, APPROVAL, "approved" if vote.approved else "rejected")


def restore(store: Store, model: str) -> Registered:
    """Bring the champion before the present one back; it has passed its gate.

    Raises:
        CoevoError: there is none.
    """
    with reached(store, "does not move the alias") as registry, FileLock(store.lock):
        reigns = _reigns(registry.get_registered_model(model))
        if len(reigns) < 2:
            raise CoevoError(f"{model}: no version was champion before {reigns[-1] if reigns else 'any'}; leave it")
        _enthrone(registry, model, reigns[:-1])
    return Registered(model, reigns[-2])


def _reigning(model: Any) -> int | None:
    return int(model.aliases[CHAMPION]) if CHAMPION in model.aliases else None


def _reigns(model: Any) -> list[int]:
    """Versions by their reigns; an alias that was set or taken away by other means counts as it is now."""
    kept = [int(number) for number in model.tags.get(REIGNS, "").split()]
    now = _reigning(model)
    return kept if now is None or kept[-1:] == [now] else [*kept, now]


def _enthrone(registry: Any, model: str, reigns: Sequence[int]) -> None:
    registry.set_registered_model_alias(model, CHAMPION, str(reigns[-1]))
    registry.set_registered_model_tag(model, REIGNS, " ".join(map(str, reigns)))


def _asked(version: Registered, tags: Mapping[str, str]) -> Asked:
    gate = {name.removeprefix("coevo.gate."): said for name, said in tags.items() if name.startswith("coevo.gate.")}
    return Asked(version, int(tags[OVER]) if tags.get(OVER) else None, gate)


def _tags(store: Store, version: Registered) -> Mapping[str, str]:
    with reached(store, "does not answer") as registry:
        found: Mapping[str, str] = registry.get_model_version(version.model, str(version.version)).tags
    return found


def _tag(store: Store, version: Registered, name: str, value: str) -> None:
    with reached(store, "does not take the decision") as registry:
        registry.set_model_version_tag(version.model, str(version.version), name, value)
