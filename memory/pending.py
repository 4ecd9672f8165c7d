"""A decision that waits for a person: kept as JSON, and carried out, or not, by a later revision."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from json import dumps

from pydantic import TypeAdapter

from configs.bank import UtilityUpdateConfig
from memory.admission.base import Decision
from memory.change import BankChange, Judged, Ruling
from memory.stats import Stats, born
from records.entry import Entry

REFUSED = "a person rejected the proposal"


@dataclass(frozen=True, slots=True)
class Pending:
    """What an admission would change in the bank.

    Attributes:
        revision: in which it was proposed.
        decision: what enters, changes or leaves, and why.
        proposed: ids of all candidates, those that would not enter too.
    """

    revision: int
    decision: Decision
    proposed: tuple[str, ...]

    def text(self) -> str:
        """Canonical JSON."""
        return dumps(asdict(self), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def parse(cls, text: str) -> "Pending":
        """The inverse of ``text``."""
        return TypeAdapter(cls).validate_json(text)

    def as_of(self, revision: int) -> "Pending":
        """The same as if it had been proposed in a later revision: what enters there was created there."""
        decision = self.decision
        moved = replace(
            decision,
            entries=tuple(self._moved(entry, revision) for entry in decision.entries),
            judged=tuple(self._judged(each, revision) for each in decision.judged),
            operations=tuple(
                replace(ruling, id=f"{revision:08d}{ruling.id[8:]}", revision=revision)
                for ruling in decision.operations
            ),
        )
        return replace(self, revision=revision, decision=moved)

    def rejected(self) -> "Pending":
        """The same if nothing of it enters: what was judged and proposed is kept for audit."""
        return replace(
            self,
            decision=Decision(
                judged=tuple(
                    replace(each, verdict=replace(each.verdict, admitted=False)) for each in self.decision.judged
                ),
                operations=tuple(_refused(ruling) for ruling in self.decision.operations if ruling.line),
            ),
        )

    def change(self, stats: Mapping[str, Stats], update: UtilityUpdateConfig | None) -> BankChange:
        """The rows that it comes to, with the counters that there are; clusters not among them."""
        decision = self.decision
        counters = born([entry.id for entry in decision.entries], decision.utility, stats, update)
        return BankChange(decision.entries, tuple(counters), decision.judged, operations=decision.operations)

    def _judged(self, each: Judged, revision: int) -> Judged:
        candidates = tuple(self._moved(entry, revision) for entry in each.candidates)
        return Judged(replace(each.verdict, revision=revision), candidates)

    def _moved(self, entry: Entry, revision: int) -> Entry:
        def when(at: int) -> int:
            return revision if at == self.revision else at

        return replace(entry, created=when(entry.created), edited=when(entry.edited), retired=when(entry.retired))


def changes_anything(decision: Decision) -> bool:
    """Whether there is something to decide: what replay held back waits for nobody."""
    return bool(decision.entries or decision.utility)


def _refused(ruling: Ruling) -> Ruling:
    return ruling if ruling.outcome == "rejected" else replace(ruling, outcome="rejected", reason=REFUSED, entries=())
