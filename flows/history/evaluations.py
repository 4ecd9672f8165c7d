"""A run as one side of a comparison: its settings, and its evaluations with their cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from coevo.flows.history import history
from coevo.flows.history.cost import Spent, is_by_hand, spending
from coevo.flows.history.expenses import Expense, expenses
from coevo.flows.history.reference import Reading
from coevo.lineage.revision.code import flat
from coevo.lineage.revision.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Evaluation of one revision on one panel.

    Attributes:
        revision: revision of policy and bank.
        panel: name of the panel.
        panel_hash: hash of its tasks.
        success: share of its tasks that were solved.
        reward: mean return; None if not recorded.
        outcomes: ``1``, ``0`` or ``-`` (lost) per task, in the order of the panel; None if not recorded.
        spent: cost of learning, up to and including this revision.
        parts: expense by part, up to and including this revision.
    """

    revision: int
    panel: str
    panel_hash: str
    success: float
    reward: float | None
    outcomes: str | None
    spent: Spent
    parts: tuple[Expense, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """One of the runs compared.

    Attributes:
        run: name of the run.
        name: ``RUN@N`` of the last revision read.
        settings: resolved configuration by dotted key, and the code revision.
        evaluations: evaluations of the revisions that led to N, oldest first.
        end: evaluations of the last evaluated one of these revisions.
        is_changed: a command (``bank import``, ``bank retire``, ``approve``) changed the bank after that evaluation.
    """

    run: str
    name: str
    settings: dict[str, Any]
    evaluations: tuple[Evaluated, ...]
    end: tuple[Evaluated, ...]
    is_changed: bool = False

    def latest(self, panel: str) -> Evaluated | None:
        """The last evaluation on a panel."""
        return next((each for each in reversed(self.evaluations) if each.panel == panel), None)

    def within(self, panel: str, kind: str, budget: float) -> Evaluated | None:
        """The last evaluation on a panel whose cost is within the budget."""
        played = (each for each in reversed(self.evaluations) if each.panel == panel)
        return next((each for each in played if (spent := each.spent.of(kind)) is not None and spent <= budget), None)


def side(opened: Reading) -> Side:
    """Side of a comparison for a run that was read."""
    state, spent, parts = opened.manifest.state, spending(opened.history), expenses(opened.history)
    led = history.trail(opened.history)
    found = [each for manifest in led for each in evaluations(manifest, spent, parts)]
    last = history.evaluated(opened.history)
    end = () if last is None else tuple(each for each in found if each.revision == last.revision)
    settings = flat(state["config"]) | {"code": state["code"][:12]}
    is_changed = last is not None and any(is_by_hand(each) for each in led if each.revision > last.revision)
    return Side(opened.paths.name, opened.name, settings, tuple(found), end, is_changed)


def evaluations(
    manifest: Manifest, spent: Sequence[Spent], parts: Sequence[tuple[Expense, ...]]
) -> Iterator[Evaluated]:
    """Evaluations of a revision; ``spent`` and ``parts`` by revision."""
    state, metrics, number = manifest.state, manifest.metrics, manifest.revision
    for panel, digest in state["panels"].items():
        outcomes = state.get("outcomes", {}).get(panel)
        success, reward = metrics[f"agent/success/{panel}"], metrics.get(f"agent/reward/{panel}")
        yield Evaluated(number, panel, digest, success, reward, outcomes, spent[number], parts[number])
