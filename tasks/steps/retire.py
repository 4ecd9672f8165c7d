"""Retirement of entries (``bank.retirement``): by paired replay without them, and by capacity.

An entry retires if E without e is at least E - delta: the policy has learned it, or it is no longer true. Its row, its
verdicts and its episodes stay, and the table ``operations`` names the reason. The bank keeps each measurement, the
credit of the entry by leaving it out, whether it retires or stays.
"""

from collections import Counter
from dataclasses import replace

from coevo.configs.bank.bank import RetirementConfig
from coevo.memory.admission.base import Decision, Trial
from coevo.memory.admission.replay import exceeds, measured, metrics
from coevo.memory.bank.change import Judged, Ruling
from coevo.memory.state import after
from coevo.memory.stats import Stats, retrieved
from coevo.records.draws import generator
from coevo.records.entry import Entry, Verdict
from coevo.tasks.draft import Result, apart
from coevo.tasks.session import Session
from coevo.tasks.stage import stage
from coevo.tasks.steps.judge import replay

Reasons = list[tuple[Entry, str]]
"""Entries that retire, with the reason of each."""


@stage("retire")
def retire(session: Session, decision: Decision) -> Result[Decision]:
    """A decision with the entries that retire; replays count towards the cost of learning."""
    bank = session.config.bank
    if bank is None or bank.retirement is None or not session.writer_is_due():
        return Result(decision)
    spent: Counter[str] = Counter()
    left_out = _measured(session, bank.retirement, decision, spent)
    useless = [(entry, why) for each in left_out for entry in each.candidates if (why := reason(each.verdict))]
    beyond = _beyond(session, bank.retirement, _decided(decision, useless, session.draft.revision))
    counts = {"bank/retirement/replay": float(len(useless)), "bank/retirement/capacity": float(len(beyond))}
    found = metrics([each.verdict for each in left_out], "bank/leave_one_out") if left_out else {}
    decided = _decided(decision, [*useless, *beyond], session.draft.revision)
    return Result(
        replace(decided, left_out=left_out, metrics=decision.metrics | counts | found), spent=apart(spent, "retiring")
    )


def _measured(
    session: Session, config: RetirementConfig, decision: Decision, spent: Counter[str]
) -> tuple[Judged, ...]:
    """Credit of some entries that the latest episodes retrieved: replays with the bank, and without the entry."""
    changed, seen = {entry.id for entry in decision.entries}, retrieved(session.recent)
    held = [entry for entry in session.bank.entries if entry.id in seen and entry.id not in changed]
    order = generator(session.key("retire")).permutation(len(held))[: config.entries]
    chosen = [held[place] for place in order.tolist()]
    trials = [Trial(read=(entry,), removed=gone) for entry in chosen for gone in ((), (entry,))]
    rewards = replay(session, spent, trials, config.replays) if trials else []
    sides = zip(chosen, rewards[::2], rewards[1::2], strict=True)
    return tuple(
        Judged(ruled(measured([entry], ours, theirs, 0.0, session.draft.revision), config.delta), (entry,))
        for entry, ours, theirs in sides
    )


def ruled(found: Verdict, delta: float | None) -> Verdict:
    """A measurement with its threshold; ``admitted`` if the entry stays. Without a threshold or a pair, it does."""
    if delta is None:
        return replace(found, admitted=True)
    return replace(found, delta=delta, admitted=not found.pairs or exceeds(found.difference, delta))


def reason(found: Verdict) -> str:
    """Reason for which an entry retires; empty if it stays."""
    if found.admitted:
        return ""
    return f"replays earn {found.difference:+.3f} with it over {found.pairs} pairs, not more than {found.delta:g}"


def _beyond(session: Session, config: RetirementConfig, decision: Decision) -> Reasons:
    entries, stats = after(session.bank.entries, decision.entries), session.bank.stats
    if config.capacity is None:
        return []
    new = {entry.id for entry in decision.entries}
    rank = sorted(entries, key=lambda e: (e.id in new, usefulness(stats.get(e.id, Stats(e.id))), e.created, e.id))
    return [(entry, f"least useful beyond {config.capacity} entries") for entry in rank[: -config.capacity]]


def usefulness(stats: Stats) -> float:
    """Expected success of episodes that see an entry (rule of succession)."""
    return (stats.successes + 1) / (stats.retrievals + 2)


def _decided(decision: Decision, gone: Reasons, revision: int) -> Decision:
    retired = {entry.id: replace(entry, retired=revision) for entry, _ in gone}
    start = len(decision.operations)
    rulings = [
        Ruling(f"{revision:08d}/{start + n:06d}", revision, entry.scope, "", "removed", why, (entry.id,))
        for n, (entry, why) in enumerate(gone)
    ]
    kept = [entry for entry in decision.entries if entry.id not in retired]
    return replace(decision, entries=(*kept, *retired.values()), operations=(*decision.operations, *rulings))
