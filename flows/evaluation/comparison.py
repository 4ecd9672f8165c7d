"""Comparison of runs: their differing settings, differences in success at the end and at equal cost, and tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING, Any

from coevo.flows.evaluation.comparison_side import Evaluated, Side, side
from coevo.flows.history.revision_reference import Reference, reading
from coevo.lineage.revision.code_version import differing, flat
from coevo.lineage.workspace import Workspace
from coevo.records.intervals import Interval, paired_success
from coevo.tasks.cost import KINDS
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from pandas import DataFrame

    from coevo.flows.evaluation.panel_evaluation import Evaluation

END = "end"
"""Comparison of the revisions that stand for the sides, whatever their cost."""
NEAR = 0.05
"""Largest difference of two costs that are called equal, as a share of the greater one."""
Play = Callable[[str], "Sequence[Evaluation]"]
"""Evaluates ``RUN@N`` on the panels of its run."""
CURVES = ("run", "revision", "panel", "success", "reward", "episodes", "tokens", "seconds")
LATEX = ("equal", "panel", "run", "revisions", "success", "difference", "95 % over tasks", "tasks")


@dataclass(frozen=True, slots=True)
class Difference:
    """Success of one side minus that of the first, on one panel.

    Attributes:
        equal: cost that is bounded on both sides: ``episodes``, ``tokens`` or ``seconds``; else ``end``.
        panel: name of the panel.
        run: name of the side.
        against: name of the first side.
        budget: the greater of the two costs, which are equal within 5 %; None at the end.
        revision: evaluated revision; ``against_revision`` is that of the first side.
        spent: cost up to that revision; None at the end, where no kind of cost is selected.
        success: success rate; ``against_success`` is that of the first side.
        difference: mean over ``tasks`` paired tasks, which neither side lost, with its 95 % interval over tasks from
            ``low`` to ``high``; where tasks differ or are unknown, difference of the two rates, and None for the
            others. Another seed may differ by more than the interval says: it takes tasks as independent.
    """

    equal: str
    panel: str
    run: str
    against: str
    budget: float | None
    revision: int
    against_revision: int
    spent: float | None
    against_spent: float | None
    success: float
    against_success: float
    difference: float
    low: float | None
    high: float | None
    tasks: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Sides in the given order, and the differences of the others from the first."""

    sides: tuple[Side, ...]
    differences: tuple[Difference, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sides."""
        return tuple(side.name for side in self.sides)

    def settings(self) -> dict[str, dict[str, Any]]:
        """Settings that differ between sides: value by side, omitted for a side without the setting."""
        keys = dict.fromkeys(chain.from_iterable(side.settings for side in self.sides))
        values = {key: {side.name: side.settings[key] for side in self.sides if key in side.settings} for key in keys}
        return {key: found for key, found in values.items() if not self._agree(found)}

    def success_rows(self) -> list[dict[str, Any]]:
        """Success of the revisions that stand for the sides, one row per panel."""
        ends = {side.name: {each.panel: each.success for each in side.end} for side in self.sides}
        panels = dict.fromkeys(chain.from_iterable(ends.values()))
        return [{"panel": panel, **{name: end.get(panel) for name, end in ends.items()}} for panel in panels]

    def expense_rows(self) -> list[dict[str, Any]]:
        """Expense by part of each side, up to each of its revisions that is compared."""
        compared = {(each.run, each.revision) for each in self.differences}
        compared |= {(each.against, each.against_revision) for each in self.differences}
        return [
            {"run": side.name, "revision": revision, **_priced(asdict(part))}
            for side in self.sides
            for revision, parts in {each.revision: each.parts for each in side.evaluations}.items()
            if (side.name, revision) in compared
            for part in parts
        ]

    def uncounted(self) -> list[str]:
        """Kinds of cost that a side has not recorded, so that they cannot be compared."""
        ends = [each.spent for side in self.sides for each in side.end]
        return [kind for kind in KINDS if any(spent.of(kind) is None for spent in ends)]

    def apart(self) -> list[str]:
        """Panels compared at the end that have no evaluations at similar cost."""
        if len({side.run for side in self.sides}) == 1:
            return []
        equal = {each.panel for each in self.differences if each.equal != END}
        return [panel for panel in dict.fromkeys(each.panel for each in self.differences) if panel not in equal]

    def equal_revisions(self) -> list[tuple[str, str]]:
        """For each side without evaluations at similar cost, two revisions that cost the same, the first side's first.

        One of them is that which stands for its side, the other was not evaluated. Sides without any are left out.
        """
        first, *others = self.sides
        alike = {each.run for each in self.differences if each.equal != END}
        found = (_of_equal_cost(first, each) for each in others if each.run != first.run and each.name not in alike)
        return [pair for pair in found if pair is not None]

    def document(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {
            "runs": [_document(side) for side in self.sides],
            "settings": self.settings(),
            "differences": [asdict(difference) for difference in self.differences],
            "expenses": self.expense_rows(),
        }

    def _agree(self, values: dict[str, Any]) -> bool:
        first, *others = values.values()
        return len(values) == len(self.sides) and all(value == first for value in others)


def compared(references: Sequence[str], workspace: Workspace, play: Play | None = None, option: str = "") -> Comparison:
    """Compare the runs named by ``RUN``, ``RUN@N`` and ``RUN@TAG``, at their revisions and at equal cost.

    Args:
        references: the sides. ``RUN`` is the run at its last evaluated revision.
        workspace: the workspace.
        play: evaluates revisions that were not evaluated, those of ``RUN`` included; None refuses them where they are
            named.
        option: option of commands for the workspace.

    Raises:
        CoevoError: a reference is malformed or does not exist, or a named revision was not evaluated.
    """
    sides = sides_of(references, workspace, last=play is not None)
    if play is not None:
        sides = [each if each.end else each.played(play(each.name)) for each in sides]
    for text, each in zip(references, sides, strict=True):
        if _named(text) and not each.end:
            raise CoevoError(
                f"{each.name} was not evaluated, so it has no figures: `coevo compare {' '.join(references)} "
                f"--evaluate{option}` evaluates it{_instead(each)}"
            )
    first, *others = sides
    return Comparison((first, *others), tuple(chain.from_iterable(differences_of(other, first) for other in others)))


def sides_of(references: Sequence[str], workspace: Workspace, last: bool = False) -> list[Side]:
    """Sides named by ``RUN``, ``RUN@N`` and ``RUN@TAG``.

    Args:
        references: the sides.
        workspace: the workspace.
        last: ``RUN`` is the run at its last revision, evaluated or not.

    Raises:
        CoevoError: a reference is malformed or does not exist.
    """
    found = []
    for text in references:
        with reading(text, workspace) as opened:
            found.append(side(opened, last or _named(text)))
    return found


def recipe_settings(reference: str, recipe: str, workspace: Workspace) -> dict[str, dict[str, Any]]:
    """Settings of a revision that differ from a recipe: value by side, omitted for a side without the setting.

    Raises:
        CoevoError: the revision or the recipe does not exist.
    """
    with reading(reference, workspace) as opened:
        return settings_beside(opened.name, opened.manifest.state["config"], recipe)


def settings_beside(name: str, config: Mapping[str, Any], recipe: str) -> dict[str, dict[str, Any]]:
    """Settings of a configuration that differ from a recipe: value by side, omitted for a side without the setting.

    Raises:
        CoevoError: the recipe does not exist.
    """
    from coevo.configs.load.load import load_recipe

    sides = {name: flat(config), recipe: flat(load_recipe(recipe).model_dump(mode="json"))}
    ours, theirs = sides.values()
    return {key: {name: found[key] for name, found in sides.items() if key in found} for key in differing(ours, theirs)}


def _priced(row: dict[str, Any]) -> dict[str, Any]:
    """A part's expense, whose money stands in it only where the run has prices."""
    return {name: value for name, value in row.items() if name != "money" or value is not None}


def _named(text: str) -> bool:
    return Reference.parse(text).revision is not None


def _instead(one: Side) -> str:
    return f"; the last one before it that was is {one.run}@{one.evaluations[-1].revision}" if one.evaluations else ""


def _document(side: Side) -> dict[str, Any]:
    last = side.end[0] if side.end else None
    return {
        "run": side.name,
        "evaluated": last and last.revision,
        "success": {each.panel: each.success for each in side.end},
        "spent": last and asdict(last.spent),
    }


def differences_of(one: Side, first: Side) -> Iterator[Difference]:
    """One side minus the first: at the end, then at equal expense. A revision is not compared with itself."""
    there = {each.panel: each for each in first.end}
    for here in one.end:
        if here.panel in there and one.name != first.name:
            yield _difference(END, None, (one, here), (first, there[here.panel]))
    for kind in KINDS:
        for panel in dict.fromkeys(each.panel for each in one.evaluations):
            yield from _at_equal(kind, panel, one, first)


def _at_equal(kind: str, panel: str, one: Side, first: Side) -> Iterator[Difference]:
    """Difference of the dearest two evaluations whose costs are equal within ``NEAR``, the nearest of these.

    It yields nothing if there are none, or only such that are the same revision, or where nothing was spent yet.
    """
    pairs = [
        ((min(ours, theirs), -abs(ours - theirs), here.revision, there.revision), max(ours, theirs), here, there)
        for here in one.on(panel)
        for there in first.on(panel)
        if (ours := here.spent.of(kind)) and (theirs := there.spent.of(kind)) and _is_near(ours, theirs)
        if (one.run, here.revision) != (first.run, there.revision)
    ]
    if pairs:
        _, budget, here, there = max(pairs, key=lambda pair: pair[0])
        yield _difference(kind, budget, (one, here), (first, there))


def _is_near(one: float, other: float) -> bool:
    return abs(one - other) <= NEAR * max(one, other)


def _of_equal_cost(first: Side, other: Side) -> tuple[str, str] | None:
    """Names of two revisions, one of which stands for its side, of equal cost of the first kind that has such.

    As in ``_at_equal``, the dearest two, and the nearest of these.
    """
    for kind in KINDS:
        found = []
        for stands, dear in ((first, other), (other, first)):
            spent = stands.end[0].spent.of(kind) if stands.end else None
            for number, each in dear.costs.items():
                if spent and (cost := each.of(kind)) and _is_near(cost, spent):
                    pair = (f"{dear.run}@{number}", stands.name)
                    found.append((spent, -abs(cost - spent), pair if dear is first else pair[::-1]))
        if found:
            return max(found)[2]
    return None


def _difference(
    equal: str, budget: float | None, one: tuple[Side, Evaluated], first: tuple[Side, Evaluated]
) -> Difference:
    (side, here), (other, there) = one, first
    gain, tasks = _paired(here, there)
    return Difference(
        equal=equal,
        panel=here.panel,
        run=side.name,
        against=other.name,
        budget=budget,
        revision=here.revision,
        against_revision=there.revision,
        spent=None if equal == END else here.spent.of(equal),
        against_spent=None if equal == END else there.spent.of(equal),
        success=here.success,
        against_success=there.success,
        difference=here.success - there.success if gain is None else gain.mean,
        low=None if gain is None else gain.low,
        high=None if gain is None else gain.high,
        tasks=tasks,
    )


def _paired(here: Evaluated, there: Evaluated) -> tuple[Interval | None, int | None]:
    """Mean difference over tasks with its normal 95 % interval, and their number; None if tasks differ or are unknown.

    Tasks that either side lost are left out.
    """
    mine, theirs = here.outcomes, there.outcomes
    if mine is None or theirs is None or here.panel_hash != there.panel_hash or len(mine) < 2:
        return None, None
    both = [(float(one), float(other)) for one, other in zip(mine, theirs, strict=True) if "-" not in (one, other)]
    if len(both) < 2:
        return None, None
    return paired_success([one for one, _ in both], [other for _, other in both]), len(both)


def curves(sides: Sequence[Side]) -> "DataFrame":
    """Held-out success of the runs by cost: one row per evaluation on a panel.

    Returns:
        A frame with ``run``, ``revision``, ``panel``, ``success``, ``reward``, ``episodes``, ``tokens``, ``seconds``.
    """
    from pandas import DataFrame

    rows = [
        (side.name, each.revision, each.panel, each.success, each.reward, *asdict(each.spent).values())
        for side in sides
        for each in side.evaluations
    ]
    return DataFrame(rows, columns=list(CURVES))


def differences(found: Comparison) -> "DataFrame":
    """Differences of a comparison, one per row, with the columns of ``Difference``."""
    from pandas import DataFrame

    names = [field.name for field in fields(Difference)]
    return DataFrame([asdict(each) for each in found.differences], columns=names)


def latex(found: Comparison) -> str:
    """Differences as a LaTeX table with the commands of ``booktabs``."""
    from pandas import DataFrame

    rows = [_cells(each) for each in found.differences]
    shown = DataFrame(rows, columns=list(LATEX)).style.format(escape="latex").format_index(axis=1, escape="latex")
    title = f"% minus {found.names[0]}, whose revisions and success are behind the stroke; 95 % over tasks, paired"
    return f"{title}\n{shown.hide(axis='index').to_latex(hrules=True, column_format='llllrrrr')}"


def _cells(each: Difference) -> tuple[str, ...]:
    where = "at the end" if each.equal == END else f"equal {each.equal}"
    interval = "" if each.low is None else f"[{each.low:+.3f}, {each.high:+.3f}]"
    revisions, gain = f"{each.revision} / {each.against_revision}", f"{each.difference:+.3f}"
    success, tasks = f"{each.success:.3f} / {each.against_success:.3f}", "" if each.tasks is None else str(each.tasks)
    return where, each.panel, each.run, revisions, success, gain, interval, tasks
