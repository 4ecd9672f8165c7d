"""Retirement of entries (``bank.retirement``): by paired replay without them, and by capacity.

An entry retires if E without e is at least E - delta: the policy has learned it, or it is no longer true. Its row, its
verdicts and its episodes stay, and the table ``operations`` names the reason.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import isnan
from statistics import fmean

from coevo.configs.bank.bank import RetirementConfig
from coevo.memory.admission.base import Decision, Trial
from coevo.memory.bank.change import Ruling
from coevo.memory.state import after
from coevo.memory.stats import Stats, retrieved
from coevo.records.draws import generator
from coevo.records.entry import Entry
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
    useless = _useless(session, bank.retirement, decision, spent)
    beyond = _beyond(session, bank.retirement, _decided(decision, useless, session.draft.revision))
    metrics = {"bank/retirement/replay": float(len(useless)), "bank/retirement/capacity": float(len(beyond))}
    decided = _decided(decision, [*useless, *beyond], session.draft.revision)
    return Result(replace(decided, metrics=decision.metrics | metrics), spent=apart(spent, "retiring"))


def _useless(session: Session, config: RetirementConfig, decision: Decision, spent: Counter[str]) -> Reasons:
    changed, seen = {entry.id for entry in decision.entries}, retrieved(session.recent)
    left = (entry for entry in session.bank.entries if entry.id in seen and entry.id not in changed)
    held = sorted(left, key=lambda entry: entry.id)  # a resumed run has them in another order
    order = generator(session.key("retire")).permutation(len(held))[: config.entries]
    chosen = [held[place] for place in order.tolist()]
    trials = [Trial(read=(entry,), removed=gone) for entry in chosen for gone in ((), (entry,))]
    rewards = replay(session, spent, trials, config.replays) if trials else []
    found = zip(chosen, rewards[::2], rewards[1::2], strict=True)
    return [(entry, why) for entry, ours, theirs in found if (why := reason(ours, theirs, config.delta))]


def reason(with_it: Sequence[float], without: Sequence[float], delta: float) -> str:
    """Reason for which an entry retires; empty if it stays. A pair with a NaN is left out."""
    gains = [a - b for a, b in zip(with_it, without, strict=True) if not (isnan(a) or isnan(b))]
    if not gains or round(fmean(gains) - delta, 12) > 0:
        return ""
    return f"replays earn {fmean(gains):+.3f} with it over {len(gains)} pairs, not more than {delta:g}"


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
