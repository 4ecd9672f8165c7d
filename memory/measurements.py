"""Measurements of lessons: what replay said of a candidate since it last left the bank, of an entry since it entered.

They are in the bank's table of verdicts, so a resumed, branched or rolled-back run has them, too.
"""

from collections.abc import Iterable

from coevo.memory.admission.admission import Decision
from coevo.memory.bank.bank import BankView
from coevo.memory.bank.change import Judged
from coevo.records.entry import Verdict


class Measurements:
    """Measurements by id of the lesson.

    One counts if it concerns one lesson alone and has a bound: without, it says nothing, or nobody asked. They begin
    anew where a lesson enters and where it leaves: those of a candidate say what it adds to the bank, those of an entry
    what the bank lacks without it.
    """

    def __init__(self) -> None:
        self._looks: dict[str, set[Verdict]] = {}
        self._since: dict[str, tuple[bool, int]] = {}

    @classmethod
    def stored(cls, bank: BankView) -> "Measurements":
        """Read the measurements of a stored bank."""
        found, rows = cls(), bank.rows()
        columns = (rows[name].to_pylist() for name in ("id", "created", "retired"))
        for name, created, retired in zip(*columns, strict=True):
            found._move(name, created, retired)
        found._add(bank.judged(), inside=False)
        found._add(bank.left_out(), inside=True)
        return found

    def of(self, lesson: str) -> list[Verdict]:
        """Measurements of a lesson, the oldest first."""
        return sorted(self._looks.get(lesson, ()), key=_in_order)

    def count(self, decision: Decision) -> None:
        """Count the measurements of a decision, and begin anew for entries that it lets in or out."""
        self._add(decision.judged, inside=False)
        self._add(decision.left_out, inside=True)
        for entry in decision.entries:
            self._move(entry.id, entry.created, entry.retired)

    def _move(self, lesson: str, created: int, retired: int) -> None:
        since = (retired < 0, max(created, retired))
        if self._since.get(lesson) != since:
            self._since[lesson] = since
            self._looks.pop(lesson, None)

    def _add(self, judged: Iterable[Judged], inside: bool) -> None:
        """Note measurements of entries inside of the bank, or of candidates outside."""
        alone = (each.verdict for each in judged if len(each.candidates) == 1 and each.verdict.bound is not None)
        for verdict in alone:
            (lesson,) = verdict.candidates
            held, since = self._since.get(lesson, (False, -1))
            if held == inside and verdict.revision > since:
                # A revision's table holds equal measurements once, in no particular order; so does this.
                self._looks.setdefault(lesson, set()).add(verdict)


def _in_order(look: Verdict) -> tuple[float, ...]:
    return look.revision, look.pairs, look.difference, look.stderr, look.bound or 0.0
