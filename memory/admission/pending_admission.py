"""Pending decisions: stored as JSON until a person decides, and applied or dropped by a later revision."""

from dataclasses import asdict, dataclass, replace
from json import dumps

from pydantic import TypeAdapter

from coevo.memory.admission.admission import Decision
from coevo.memory.bank.change import Judged, Ruling
from coevo.records.entry import Entry

REFUSED = "a person rejected the proposal"


@dataclass(frozen=True, slots=True)
class Pending:
    """Changes to the bank that an admission proposes.

    Attributes:
        revision: revision of the proposal.
        decision: entries that enter, change or leave, and the reasons.
        proposed: ids of all candidates, including those that would not enter.
        fired: True if the writer has read the episodes so far; False if only trials have ended.
    """

    revision: int
    decision: Decision
    proposed: tuple[str, ...]
    fired: bool = True

    def text(self) -> str:
        """Canonical JSON."""
        return dumps(asdict(self), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def parse(cls, text: str) -> "Pending":
        """Parse the output of ``text``."""
        return TypeAdapter(cls).validate_json(text)

    def as_of(self, revision: int) -> "Pending":
        """Return the proposal as if made in a later revision: new entries are created there."""
        decision = self.decision
        moved = replace(
            decision,
            entries=tuple(self._moved(entry, revision) for entry in decision.entries),
            judged=tuple(self._judged(each, revision) for each in decision.judged),
            left_out=tuple(self._judged(each, revision) for each in decision.left_out),
            operations=tuple(
                replace(ruling, id=f"{revision:08d}{ruling.id[8:]}", revision=revision)
                for ruling in decision.operations
            ),
        )
        return replace(self, revision=revision, decision=moved)

    def rejected(self) -> "Pending":
        """Return the proposal with nothing admitted; verdicts and operations are kept for audit."""
        return replace(
            self,
            decision=Decision(
                judged=tuple(
                    replace(each, verdict=replace(each.verdict, admitted=False)) for each in self.decision.judged
                ),
                left_out=tuple(
                    replace(each, verdict=replace(each.verdict, admitted=True)) for each in self.decision.left_out
                ),
                operations=tuple(_refused(ruling) for ruling in self.decision.operations if ruling.line),
            ),
        )

    def _judged(self, each: Judged, revision: int) -> Judged:
        candidates = tuple(self._moved(entry, revision) for entry in each.candidates)
        return Judged(replace(each.verdict, revision=revision), candidates)

    def _moved(self, entry: Entry, revision: int) -> Entry:
        def when(at: int) -> int:
            return revision if at == self.revision else at

        return replace(entry, created=when(entry.created), edited=when(entry.edited), retired=when(entry.retired))


def changes_anything(decision: Decision) -> bool:
    """Report whether the decision changes the bank; candidates rejected by replay need no approval."""
    return bool(decision.entries or decision.utility)


def takes_anything(decision: Decision, trials: bool) -> bool | None:
    """Report whether the decision adds or changes an active entry; retirement alone does not.

    Args:
        decision: on a proposal.
        trials: True while candidates are on trial.

    Returns:
        None while candidates are on trial and no trial has ended: it is not known yet.
    """
    if decision.utility or any(entry.active for entry in decision.entries):
        return True
    return None if trials and not decision.ended else False


def _refused(ruling: Ruling) -> Ruling:
    return ruling if ruling.outcome == "rejected" else replace(ruling, outcome="rejected", reason=REFUSED, entries=())
