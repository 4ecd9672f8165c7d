"""Expense of a run by part: rollout, update, writing, judging, retiring, evaluation and what else takes time.

The budgets of a comparison at equal cost contain some of it: ``PARTS`` names them. The seconds of all parts sum to the
run's wall-clock seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.cost import KINDS, played, time_by_part

BRIEF = 0.05
"""Seconds below which a part that counts nothing is not shown: its stage had nothing to do."""


@dataclass(frozen=True, slots=True)
class ExpensePart:
    """Part of a run's expense.

    Attributes:
        name: name, and folder of its metrics below ``cost/``; its seconds are those of ``time_by_part``.
        budgets: kinds of equal cost that contain it.
    """

    name: str
    budgets: tuple[str, ...]


POLICY = "policy"
"""Part with the calls to a policy's endpoint: requests, tokens and money that the parts that play do not count."""
PARTS = (
    ExpensePart("preparation", ()),
    ExpensePart("rollout", KINDS),
    ExpensePart("update", ("seconds",)),
    ExpensePart("writing", ("seconds",)),
    ExpensePart("judging", KINDS),
    ExpensePart("retiring", KINDS),
    ExpensePart(POLICY, ()),
    ExpensePart("evaluation", ()),
    ExpensePart("internalization", ()),
    ExpensePart("other", ()),
)


@dataclass(frozen=True, slots=True)
class Expense:
    """Expense of a part up to a revision. A value is None where the run has no such count.

    Attributes:
        part: name of the part.
        episodes: number of its episodes.
        questions: number of questions to the writer model, or of requests to the policy's endpoint.
        tokens: tokens of its prompts and answers; those of the part ``policy`` are counted by its endpoint,
            whatever part asked it, and stand beside those of the others.
        seconds: wall-clock seconds of its stages.
        budgets: kinds of equal cost that contain it.
        money: price of its tokens, in the currency of ``bank.writer.model.price`` or ``policy.price``.
    """

    part: str
    episodes: int | None
    questions: int | None
    tokens: int | None
    seconds: float | None
    budgets: tuple[str, ...]
    money: float | None = None

    def __add__(self, other: "Expense") -> "Expense":
        return Expense(
            self.part,
            _whole([self.episodes, other.episodes]),
            _whole([self.questions, other.questions]),
            _whole([self.tokens, other.tokens]),
            _sum([self.seconds, other.seconds]),
            self.budgets,
            _sum([self.money, other.money]),
        )

    def is_shown(self) -> bool:
        """Return True if the part counts anything, or took time."""
        counts = (self.episodes, self.questions, self.tokens)
        return any(count is not None for count in counts) or (self.seconds or 0) >= BRIEF


def expenses(history: Sequence[Manifest]) -> list[tuple[Expense, ...]]:
    """Expense by part up to and including each revision; parts without any are left out."""
    sums = accumulate((expense_of(manifest) for manifest in history), _added)
    return [tuple(each for each in found if each.is_shown()) for found in sums]


def expense_of(manifest: Manifest) -> tuple[Expense, ...]:
    """Expense of one revision by part, in the order of ``PARTS``, whether or not it counts anything."""
    return tuple(_of(manifest, part) for part in PARTS)


def _added(before: tuple[Expense, ...], here: tuple[Expense, ...]) -> tuple[Expense, ...]:
    return tuple(one + other for one, other in zip(before, here, strict=True))


def _of(manifest: Manifest, part: ExpensePart) -> Expense:
    if part.name == POLICY:
        return _of_endpoint(manifest, part)
    seconds = time_by_part([manifest]).get(part.name)
    if not played(manifest):
        return Expense(part.name, None, None, None, seconds, part.budgets)
    episodes, questions, *tokens = (
        manifest.metrics.get(f"cost/{part.name}/{kind}")
        for kind in ("episodes", "questions", "tokens", "prompt_tokens", "answer_tokens")
    )
    paid = manifest.metrics.get(f"cost/{part.name}/money")
    return Expense(part.name, _whole([episodes]), _whole([questions]), _whole(tokens), seconds, part.budgets, paid)


def _of_endpoint(manifest: Manifest, part: ExpensePart) -> Expense:
    """Expense of a policy behind an endpoint, which depends on failures and stands among the rates."""
    requests, *tokens, paid = (
        manifest.rates.get(f"cost/{POLICY}/{kind}") for kind in ("requests", "prompt_tokens", "answer_tokens", "money")
    )
    return Expense(part.name, None, _whole([requests]), _whole(tokens), None, part.budgets, paid)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _whole(values: Sequence[float | None]) -> int | None:
    total = _sum(values)
    return None if total is None else int(total)
