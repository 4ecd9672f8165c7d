"""Retirement of entries (``bank.retirement``): by paired replay without them, by disuse, and by capacity.

An entry retires if E without e is at least E - delta: the policy has learned it, or it is no longer true. One
measurement by itself is mostly chance, and an entry is measured again and again. So all measurements since it entered
also have to bound its gain below delta + ``MARGIN``: by a bound that holds at every look of its life.

An entry that no episode retrieves changes no reward, and needs no replay. Rows, verdicts and episodes stay, and the
table ``operations`` names the reason. The bank keeps each measurement, the credit of the entry by leaving it out,
whether it retires or stays.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from coevo.configs.bank.bank_config import RetirementConfig
from coevo.memory.admission.admission import Decision, Trial
from coevo.memory.admission.evidence import upper_bound
from coevo.memory.admission.replay import PairedRewards, exceeds, measured, metrics, suffices
from coevo.memory.bank.change import Judged, Ruling
from coevo.memory.bank_state import after
from coevo.memory.retirement_counters import RetirementCounter, counted
from coevo.memory.stats import Stats, retrieved
from coevo.records.draws import extend, generator
from coevo.records.entry import Entry, Verdict
from coevo.tasks.iteration.paired_replay import replay
from coevo.tasks.pending_revision import Result, apart
from coevo.tasks.session import Session
from coevo.tasks.stage import stage

MARGIN = 0.1
"""Gain beyond delta that measurements must rule out: none that ends can tell delta from a little more."""

Reasons = list[tuple[Entry, str]]
"""Entries that retire, with the reason of each."""


@stage("retire")
def retire(session: Session, decision: Decision) -> Result[Decision]:
    """A decision with the entries that retire; replays count towards the cost of learning."""
    bank = session.config.bank
    if bank is None or bank.retirement is None or not session.due.writer():
        return Result(decision)
    config, revision, spent = bank.retirement, session.pending.revision, Counter[str]()
    chosen, session.bank.retirement_counters = _chosen(session, config, decision)
    left_out = _credited(session, config, chosen, spent)
    found = metrics([each.verdict for each in left_out], "bank/leave_one_out") if left_out else {}
    useless = [(entry, why) for each in left_out for entry in each.candidates if (why := reason(each.verdict))]
    decision = _decided(decision, useless, revision)
    found["bank/retirement/replay"] = float(len(useless))
    for kind, rule in (("disuse", _unseen), ("capacity", _beyond)):
        gone = rule(session, config, decision)
        decision = _decided(decision, gone, revision)
        found[f"bank/retirement/{kind}"] = float(len(gone))
    measurements = replace(decision, left_out=left_out, metrics=decision.metrics | found)
    return Result(measurements, spent=apart(spent, "retiring"))


def _measured(
    session: Session, config: RetirementConfig, cases: Sequence[tuple[Entry, Sequence[Entry]]], spent: Counter[str]
) -> list[tuple[Entry, Verdict, int]]:
    """Gain of the bank over the bank without some entries, on tasks that retrieved the first of each case.

    Returns:
        that entry, the measurement and its planned pairs, for each case.
    """
    trials = [Trial(read=(entry,), removed=removed) for entry, gone in cases for removed in ((), gone)]
    rewards = replay(session, spent, trials, config.replays) if trials else []
    sides = zip(cases, rewards[::2], rewards[1::2], strict=True)
    return [
        (entry, measured([entry], PairedRewards(ours, theirs), 0.0, session.pending.revision), len(ours))
        for (entry, _), ours, theirs in sides
    ]


def _credited(
    session: Session, config: RetirementConfig, chosen: Sequence[Entry], spent: Counter[str]
) -> tuple[Judged, ...]:
    """Credit of entries by leaving each out; one that can be missed alone, but not beside others, stays.

    Of those that can be missed alone, the least useful retires. Each further one is also left out with all before it,
    and stays if that measurement alone exceeds delta.
    """
    looks, span = session.bank.measurements.of, session.bank.span
    found = [
        Judged(ruled(verdict, planned, config, looks(entry.id), span), (entry,))
        for entry, verdict, planned in _measured(session, config, [(entry, (entry,)) for entry in chosen], spent)
    ]
    useless = sorted((each for each in found if not each.verdict.admitted), key=_gain)
    gone = [entry for each in useless for entry in each.candidates]
    beside = _measured(session, config, [(gone[n], gone[: n + 1]) for n in range(1, len(gone))], spent)
    stay = {(entry,) for entry, verdict, planned in beside if _is_needed(verdict, planned, config.delta)}
    return tuple(
        replace(each, verdict=replace(each.verdict, admitted=True)) if each.candidates in stay else each
        for each in found
    )


def _gain(each: Judged) -> tuple[float, str]:
    return each.verdict.difference, each.candidates[0].id


def _chosen(
    session: Session, config: RetirementConfig, decision: Decision
) -> tuple[list[Entry], dict[str, RetirementCounter]]:
    """Entries that this firing judges, of those retrieved by the latest episodes, and the counters of all after it.

    Those that waited longest come first. Half of the places are for entries that the last measurement made doubtful, so
    that one that is no longer true need not wait for its turn again and again. Entries that waited equally long are
    drawn from the ids in order: a resumed run holds the same bank in another order.
    """
    held, seen = {entry.id: entry for entry in session.bank.entries}, retrieved(session.recent)
    names = sorted((seen & held.keys()) - {entry.id for entry in decision.entries})
    drawn = [names[index] for index in generator(session.key("retire")).permutation(len(names))]
    waited = {name: counter.waited for name, counter in session.bank.retirement_counters.items()}
    order = sorted(drawn, key=lambda name: -waited.get(name, 0))
    again = [name for name in order if _is_doubtful(session.bank.measurements.of(name), config)][: config.entries // 2]
    chosen = [*again, *(name for name in order if name not in again)][: config.entries]
    return [held[name] for name in chosen], counted(session.bank.retirement_counters, held, seen, chosen)


def _is_doubtful(looks: Sequence[Verdict], config: RetirementConfig) -> bool:
    return bool(looks) and config.delta is not None and not exceeds(looks[-1].difference, config.delta)


def ruled(
    found: Verdict, planned: int, config: RetirementConfig, looks: Sequence[Verdict] = (), span: float = 1.0
) -> Verdict:
    """A measurement with its threshold and its upper bound; ``admitted`` if the entry stays.

    It stays if this measurement exceeds delta, if all of its life do not rule out a gain of delta + ``MARGIN``, without
    a threshold, and with fewer than half of the planned pairs. An entry with a gain of at least delta + ``MARGIN``
    retires with probability 1 - ``config.confidence`` at most, however often it is measured.

    Args:
        found: the measurement.
        planned: its planned pairs.
        config: threshold and confidence.
        looks: earlier measurements of the entry, the oldest first.
        span: highest minus lowest reward of an episode.
    """
    if suffices(found, planned):
        found = replace(found, bound=upper_bound([*looks, found], config.confidence, span))
    if config.delta is None:
        return replace(found, admitted=True)
    open_yet = found.bound is None or not exceeds(config.delta + MARGIN, found.bound)
    return replace(found, delta=config.delta, admitted=open_yet or _is_needed(found, planned, config.delta))


def _is_needed(found: Verdict, planned: int, delta: float | None) -> bool:
    """Report whether this measurement alone says that the bank needs the entry, or says too little."""
    return delta is None or not suffices(found, planned) or exceeds(found.difference, delta)


def reason(found: Verdict) -> str:
    """Reason for which an entry retires; empty if it stays."""
    if found.admitted:
        return ""
    return (
        f"replays earn {found.difference:+.3f} with it over {found.pairs} pairs, not more than {found.delta:g}, and at "
        f"most {found.bound:+.3f} by all since it entered"
    )


def _unseen(session: Session, config: RetirementConfig, decision: Decision) -> Reasons:
    if config.unseen is None:
        return []
    changed, why = {entry.id for entry in decision.entries}, f"no episode of {config.unseen} firings retrieved it"
    left = sorted((entry for entry in session.bank.entries if entry.id not in changed), key=lambda entry: entry.id)
    return [(entry, why) for entry in left if session.bank.retirement_counters[entry.id].unseen >= config.unseen]


def _beyond(session: Session, config: RetirementConfig, decision: Decision) -> Reasons:
    if config.capacity is None:
        return []
    entries = sorted(after(session.bank.entries, decision.entries), key=lambda entry: entry.id)
    new = {entry.id for entry in decision.entries}
    worth = _drawn(session, entries) if config.beyond == "random" else _usefulness(session, entries)
    rank = sorted(entries, key=lambda entry: (entry.id in new, worth[entry.id], entry.created, entry.id))
    which = "drawn" if config.beyond == "random" else "least useful"
    return [(entry, f"{which} beyond {config.capacity} entries") for entry in rank[: -config.capacity]]


def _drawn(session: Session, entries: Sequence[Entry]) -> dict[str, float]:
    order = generator(extend(session.key("retire"), "beyond")).permutation(len(entries))
    return {entry.id: float(rank) for entry, rank in zip(entries, order, strict=True)}


def _usefulness(session: Session, entries: Sequence[Entry]) -> dict[str, float]:
    stats = session.bank.stats
    return {entry.id: stats.get(entry.id, Stats(entry.id)).usefulness for entry in entries}


def _decided(decision: Decision, gone: Reasons, revision: int) -> Decision:
    retired = {entry.id: replace(entry, retired=revision) for entry, _ in gone}
    start = len(decision.operations)
    rulings = [
        Ruling(f"{revision:08d}/{start + n:06d}", revision, entry.scope, "", "removed", why, (entry.id,))
        for n, (entry, why) in enumerate(gone)
    ]
    kept = [entry for entry in decision.entries if entry.id not in retired]
    return replace(decision, entries=(*kept, *retired.values()), operations=(*decision.operations, *rulings))
