"""A run as one side of a comparison: its settings, and its evaluations with their cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from coevo.flows.history import history
from coevo.flows.history.expenses import Expense, expenses
from coevo.flows.history.revision_reference import Reading
from coevo.lineage.revision.code_version import flat
from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.cost import Spent, is_by_hand, spending

if TYPE_CHECKING:
    from coevo.flows.evaluation.panel_evaluation import Evaluation


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
        name: ``RUN@N`` of the revision that stands for the run.
        settings: resolved configuration by dotted key, and the code revision.
        evaluations: evaluations of the revisions that led to the last one read, oldest first.
        end: evaluations of N; empty if it was not evaluated.
        spent: cost of learning up to and including the last revision read; ``parts`` is the expense by part.
        read: ``RUN@N`` of the last revision read, which may be later than ``name``.
        costs: cost of learning up to and including each kept revision that led to the last one read, by revision.
        is_changed: a command (``bank import``, ``bank retire``, ``approve``) changed the bank between the two.
    """

    run: str
    name: str
    settings: dict[str, Any]
    evaluations: tuple[Evaluated, ...]
    end: tuple[Evaluated, ...]
    spent: Spent = field(default_factory=Spent)
    parts: tuple[Expense, ...] = ()
    read: str = ""
    costs: Mapping[int, Spent] = field(default_factory=dict)
    is_changed: bool = False

    def on(self, panel: str) -> list[Evaluated]:
        """Evaluations on a panel, oldest first."""
        return [each for each in self.evaluations if each.panel == panel]

    def played(self, results: "Sequence[Evaluation]") -> "Side":
        """The side with the results of an evaluation of the last revision read."""
        revision = int(self.read.rpartition("@")[2])
        end = tuple(_evaluated(revision, result, self) for result in results)
        return replace(self, evaluations=(*self.evaluations, *end), end=end)


def side(opened: Reading, named: bool) -> Side:
    """Side of a comparison for a run that was read.

    Args:
        opened: the run, up to a revision.
        named: that very revision stands for the run; otherwise the last evaluated one that led to it, if any.
    """
    spent, parts = spending(opened.history), expenses(opened.history)
    led = history.trail(opened.history)
    found = tuple(each for manifest in led for each in evaluations(manifest, spent, parts))
    kept = set(opened.lineage.history.retained())
    stands = (None if named else history.evaluated(opened.history)) or opened.manifest
    return Side(
        run=opened.paths.name,
        name=f"{opened.paths.name}@{stands.revision}",
        settings=flat(stands.state["config"]) | {"code": stands.state["code"][:12]},
        evaluations=found,
        end=tuple(each for each in found if each.revision == stands.revision),
        spent=spent[-1],
        parts=parts[-1],
        read=opened.name,
        costs={each.revision: spent[each.revision] for each in led if each.revision in kept},
        is_changed=any(is_by_hand(each) for each in led if each.revision > stands.revision),
    )


def _evaluated(revision: int, result: "Evaluation", side: Side) -> Evaluated:
    outcomes = "".join("-" if each.lost else "01"[each.success] for each in result.episodes)
    reward = fmean(each.reward for each in result.episodes if not each.lost)
    panel = result.panel
    return Evaluated(revision, panel.name, panel.hash, result.success, reward, outcomes, side.spent, side.parts)


def evaluations(
    manifest: Manifest, spent: Sequence[Spent], parts: Sequence[tuple[Expense, ...]]
) -> Iterator[Evaluated]:
    """Evaluations of a revision; ``spent`` and ``parts`` by revision."""
    state, metrics, number = manifest.state, manifest.metrics, manifest.revision
    for panel, digest in state["panels"].items():
        outcomes = state.get("outcomes", {}).get(panel)
        success, reward = metrics[f"agent/success/{panel}"], metrics.get(f"agent/reward/{panel}")
        yield Evaluated(number, panel, digest, success, reward, outcomes, spent[number], parts[number])
