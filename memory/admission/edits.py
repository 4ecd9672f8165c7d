"""Edit operations (JERP Eq. 27), carried out in order: each is applied or rejected with a reason, and recorded."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set

from coevo.configs.bank.admission_config import EditsAdmissionConfig
from coevo.memory.admission.admission import Decision, Replay
from coevo.memory.bank.change import Ruling
from coevo.memory.edit_operations import KINDS, Pool, RefusedError, Rule, parse
from coevo.memory.library import Library
from coevo.memory.writers.writer import Edit, Proposal
from coevo.records.entry import entry_id

MAX_LINE_CHARS = 300
"""Most characters of a line in the record."""

EditRow = tuple[str, str, str, str, tuple[str, ...]]
"""Fields of a ruling: scope, line, outcome, reason, entries."""


class EditsAdmission:
    """Edits of pools of entries; scores change by fixed steps, and an invalid line does not affect the others."""

    def __init__(self, config: EditsAdmissionConfig) -> None:
        self._config = config

    def decide(self, proposal: Proposal, library: Library, replay: Replay, revision: int) -> Decision:
        """Return the edited pools after their operations, pruned; other pools do not change."""
        scopes = {entry.id: entry.scope for entry in library.entries}
        pools: dict[str, Pool] = {}
        rows = list[EditRow]()
        for edit in proposal.edits:
            if edit.scope not in pools:
                pools[edit.scope] = Pool(edit.scope, _rules(library, edit.scope), scopes, self._config, revision)
            rows.append(_carried_out(edit, pools[edit.scope], library.admission.barred))
        for pool in pools.values():
            rows += [(pool.scope, "", "removed", why, (entry,)) for entry, why in pool.prune()]
        rulings = tuple(Ruling(f"{revision:08d}/{n:06d}", revision, *row) for n, row in enumerate(rows))
        return Decision(
            entries=tuple(entry for pool in pools.values() for entry in pool.entries()),
            utility={entry: score for pool in pools.values() for entry, score in pool.scores().items()},
            operations=rulings,
            metrics=metrics(rulings, pools.values()),
        )


def metrics(rulings: Sequence[Ruling], pools: Iterable[Pool]) -> dict[str, float]:
    """Operations per outcome, applied operations per kind, and the size of the largest pool."""
    outcomes = Counter(ruling.outcome for ruling in rulings)
    kinds = Counter(ruling.line.partition("(")[0].strip() for ruling in rulings if ruling.outcome == "applied")
    counts = {outcome: outcomes[outcome] for outcome in ("applied", "rejected", "removed")}
    counts |= {"proposed": outcomes["applied"] + outcomes["rejected"]}
    counts |= {kind.lower(): kinds[kind] for kind in KINDS}
    counts |= {"largest_pool": max((len(pool.rules) for pool in pools), default=0)}
    return {f"bank/edits/{name}": float(count) for name, count in counts.items()}


def _rules(library: Library, scope: str) -> list[Rule]:
    rows = [row for row in library.rows(scope).tolist() if library.entries[row].scope == scope]
    return [Rule(library.entries[row], float(library.utility[row])) for row in rows]


def _carried_out(edit: Edit, pool: Pool, barred: Set[str]) -> EditRow:
    line = audited(edit.line)
    try:
        operation = parse(edit.line)
        if operation.text and entry_id(edit.scope, operation.text) in barred:
            raise RefusedError("says what a person has retired")
        return edit.scope, line, "applied", "", pool.apply(operation, edit.sources)
    except RefusedError as error:
        return edit.scope, line, "rejected", str(error), ()


def audited(line: str) -> str:
    """Return the start of a line, with unprintable characters escaped."""
    start = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line[:MAX_LINE_CHARS])
    return (
        start if len(start) <= MAX_LINE_CHARS and len(line) <= MAX_LINE_CHARS else f"{start[: MAX_LINE_CHARS - 3]}..."
    )


def admission(config: EditsAdmissionConfig) -> EditsAdmission:
    """Edits with the settings of a configuration."""
    return EditsAdmission(config)
