"""A run as one side of a comparison: what it was set to, and its evaluations with what was spent until then."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flows import history
from flows.reference import Reading
from flows.spending import Spent, spending
from lineage.code import flat
from lineage.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One panel as it was played at one revision.

    Attributes:
        revision: of the policy and bank that played.
        panel: its name.
        panel_hash: equal where the tasks are.
        success: share of its tasks that were solved.
        reward: mean return; None where the revision does not say.
        outcomes: ``1`` or ``0`` for each task, in the order of the panel; None where the revision does not say.
        spent: on learning, up to and including this revision.
    """

    revision: int
    panel: str
    panel_hash: str
    success: float
    reward: float | None
    outcomes: str | None
    spent: Spent


@dataclass(frozen=True, slots=True)
class Side:
    """One of the runs compared.

    Attributes:
        run: its name.
        name: ``RUN@N`` as read.
        settings: resolved configuration by dotted key, and the code revision.
        evaluations: those on the way to N, oldest first.
        end: those of the last revision among them that was evaluated.
    """

    run: str
    name: str
    settings: dict[str, Any]
    evaluations: tuple[Evaluated, ...]
    end: tuple[Evaluated, ...]

    def latest(self, panel: str) -> Evaluated | None:
        """The last evaluation on a panel."""
        return next((each for each in reversed(self.evaluations) if each.panel == panel), None)

    def within(self, panel: str, kind: str, budget: float) -> Evaluated | None:
        """The last evaluation on a panel for which no more than the budget had been spent."""
        played = (each for each in reversed(self.evaluations) if each.panel == panel)
        return next((each for each in played if (spent := each.spent.of(kind)) is not None and spent <= budget), None)


def side(opened: Reading) -> Side:
    """What a reading says."""
    state, spent = opened.manifest.state, spending(opened.history)
    found = [each for manifest in history.trail(opened.history) for each in evaluations(manifest, spent)]
    last = history.evaluated(opened.history)
    end = () if last is None else tuple(each for each in found if each.revision == last.revision)
    settings = flat(state["config"]) | {"code": state["code"][:12]}
    return Side(opened.paths.name, opened.name, settings, tuple(found), end)


def evaluations(manifest: Manifest, spent: Sequence[Spent]) -> Iterator[Evaluated]:
    """The panels that were played at a revision; ``spent`` by revision."""
    state, metrics = manifest.state, manifest.state["metrics"]
    for panel, digest in state["panels"].items():
        outcomes = state.get("outcomes", {}).get(panel)
        success, reward = metrics[f"success/{panel}"], metrics.get(f"reward/{panel}")
        yield Evaluated(manifest.revision, panel, digest, success, reward, outcomes, spent[manifest.revision])
