"""Steps of the bank: counters of the entries that episodes saw, a proposal of the writer, its judgement and admission.

A proposal is judged by replays, or by trials within the rollout (CoEvo-RL Eq. 7): then the rewards of both halves of a
group are added to the candidate's sums, which the revision holds.
"""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import chain
from statistics import fmean

from coevo.configs.bank.bank_config import BankConfig
from coevo.configs.bank.writer import OutsideWriterConfig
from coevo.memory.admission.admission import Decision, Trial
from coevo.memory.admission.pending_admission import Pending, changes_anything, takes_anything
from coevo.memory.source_tasks import SourceTask
from coevo.memory.stats import FROM, RetrievalCounts, retrieval_counts, retrieved
from coevo.memory.writers.writer import Evidence, Proposal
from coevo.records.episode import Episode
from coevo.records.metric_names import UNREAD, UNSHOWN, UNTAKEN, UNWRITTEN
from coevo.tasks.gates.entries import check_candidates, check_edits
from coevo.tasks.iteration.batch import trial_config
from coevo.tasks.iteration.paired_replay import replay
from coevo.tasks.pending_revision import Result, apart
from coevo.tasks.play.treatment_groups import TreatmentGroups
from coevo.tasks.session import Session
from coevo.tasks.stage import stage, untracked
from coevo.tasks.writing.ask_writer_model import ask_of
from coevo.tasks.writing.writer_rewards import gains_of, replayed, unmatched
from coevo.utilities.errors import CoevoError


@untracked("update statistics")
def update_statistics(session: Session) -> Result[None]:
    """Credit entries with the episodes that this iteration has ended; utilities change only while the bank does."""
    config, bank, episodes = session.config.bank, session.bank, session.ended
    if config is None:
        return Result(None)
    bank.update_statistics(episodes, utilities=session.due.bank())
    metrics = count_metrics(retrieval_counts((entry.id for entry in bank.entries), bank.stats)) | unshown(session)
    silent = sum(not episode.turns for episode in episodes)
    unread = {UNREAD: silent} if silent else {}
    if config.utility is None:
        return Result(None, metrics, spent=unread)
    worth = [bank.stats[entry].utility for entry in sorted(retrieved(episodes)) if entry in bank.stats]
    mean = sum(worth) / len(worth) if worth else config.utility.initial
    return Result(None, metrics | {"bank/utility": mean}, spent=unread)


def unshown(session: Session) -> dict[str, float]:
    """Number of iterations in a row, this one included, whose prompts show no entry of a bank that has some.

    Iterations without a bank on purpose (``warmup``), or in which no episode ended, leave the number as it is.
    """
    pending, head = session.pending.metrics, session.stores.lineage.history.head()
    last = pending if session.iteration > session.frozen_at or head is None else head.metrics
    before, entries = last.get(UNSHOWN, 0.0), bool(session.bank.entries)
    known = not entries or (session.due.is_warm() and any(each.turns for each in session.ended))
    shown = any(turn.retrieved for episode in session.ended for turn in episode.turns)
    now = before if not known else before + 1 if entries and not shown else 0.0
    return {UNSHOWN: now} if now or UNSHOWN in pending else {}


def count_metrics(counts: RetrievalCounts | None) -> dict[str, float]:
    """Metrics of how often the active entries have been retrieved so far; empty for an empty bank."""
    if counts is None:
        return {}
    bins = {f"from_{least}": float(n) for least, n in zip(FROM, counts.histogram, strict=True)}
    return {
        "bank/retrieval/count_min": float(counts.least),
        "bank/retrieval/count_median": counts.median,
        "bank/retrieval/count_max": float(counts.most),
        "bank/retrieval/never_share": counts.never / counts.entries,
    } | {f"bank/retrieval/count_histogram/{name}": n for name, n in bins.items()}


@stage("write candidates")
def write(session: Session) -> Result[Proposal]:
    """Proposal from the episodes since the writer's last firing (CoEvo-RL Algorithm 1, line 8).

    The episodes become references for later firings.

    Raises:
        CoevoError: the proposal differs from what the writer's class states of it.
    """
    bank, writer = session.config.bank, session.parts.writer
    assert bank is not None and writer is not None
    revision, writing = session.pending.revision, session.parts.writing
    ask = ask_of(writing, revision)
    evidence = Evidence(session.recent, session.bank.library(), session.references, revision, ask)
    proposal = writer.write(evidence)
    check_stated(bank, proposal)
    if session.config.evaluation.retrieval:
        shown = (*session.references.episodes(), *session.recent)
        session.source_tasks |= {episode.task.id: SourceTask.of(episode.task) for episode in shown}
    spent, rates = dict[str, float](), dict[str, float]()
    if writing is not None:
        writing.refused(proposal.rejects)
        spent, rates = writing.cost(), writing.requests()
    if bank.references:
        session.references.add(session.recent)
    idle = idle_firings(session, UNWRITTEN, bool(proposal.entries or proposal.edits))
    counted = {f"bank/writer/{name}": count for name, count in proposal.counts.items()}
    return Result(proposal, counted | idle, rates, spent)


def check_stated(config: BankConfig, proposal: Proposal) -> None:
    """Check that a writer of another package proposes what its class states, so that nothing is passed over in silence.

    Raises:
        CoevoError: it proposes operations that nobody carries out, or a candidate without its worth.
    """
    if not isinstance(config.writer, OutsideWriterConfig):
        return
    if proposal.edits and not config.writer.edits:
        raise CoevoError(
            f"bank.writer.type={config.writer.type} proposes operations, which bank.admission.type="
            f"{config.admission.type} does not carry out: state edits = True in its class"
        )
    if config.writer.scores and not proposal.worth.keys() >= {entry.id for entry in proposal.entries}:
        raise CoevoError(
            f"bank.writer.type={config.writer.type} leaves out the worth of a candidate: give it in Proposal.worth, or "
            "state scores = False in its class"
        )


@untracked("admit")
def admit(session: Session, proposal: Proposal, decision: Decision) -> Result[None]:
    """Carry out a decision, or leave it to a person; verdicts and candidates are kept in either case.

    Trials of candidates begin and end in either case: they do not change the bank.
    """
    proposed, bank, config = [entry.id for entry in proposal.entries], session.bank, session.config.bank
    assert config is not None
    bank.proceed(decision, session.recent)
    if session.config.approval.admission == "person" and changes_anything(decision):
        change = replace(decision, begun=(), ended=())
        session.wait_for(Pending(session.pending.revision, change, tuple(proposed), session.due.writer()))
        waiting = {"bank/proposed": float(len(proposed)), "bank/size": float(len(bank.entries))}
        return Result(None, {**decision.metrics, **waiting})
    before = {entry.id for entry in bank.entries}
    bank.apply(decision, session.recent)
    idle = {}
    if session.due.writer():
        idle = idle_firings(session, UNTAKEN, takes_anything(decision, bool(bank.trials)))
        session.fire()
    judged = decision.ended if config.admission.type == "within-group" else proposed  # the others wait, or have no room
    return Result(None, {**decision.metrics, **counts(before, {entry.id for entry in bank.entries}, judged), **idle})


def idle_firings(session: Session, name: str, used: bool | None) -> dict[str, float]:
    """Number of idle firings in a row, this one included; empty if it is none. It continues from the last firing.

    Args:
        session: of the run.
        name: of the metric.
        used: False for an idle firing; None if that is not known yet, which leaves the number as it is.
    """
    pending = session.pending.metrics
    if used:
        return {name: 0.0} if name in pending else {}  # of an earlier firing of the same revision
    last = (
        pending
        if name in pending or "bank/size" in pending
        else session.stores.lineage.history.manifest(session.fired).metrics
    )
    idle = last.get(name, 0.0) + (used is False)
    return {name: idle} if idle else {}


def counts(before: Set[str], after: Set[str], proposed: Iterable[str]) -> dict[str, float]:
    """Metrics of a bank's change, from the ids of its entries before and after, and of the candidates."""
    admitted, rejected = len(after - before), sum(entry not in after for entry in proposed)
    found = {
        "bank/admitted": float(admitted),
        "bank/retired": float(len(before - after)),
        "bank/rejected": float(rejected),
        "bank/size": float(len(after)),
    }
    return found | ({"bank/admitted_share": admitted / (admitted + rejected)} if admitted + rejected else {})


@stage("judge")
def judge(session: Session, proposal: Proposal) -> Result[Decision]:
    """Decision on a proposal; the bank is not changed yet. Replays count towards the cost of learning.

    The gains of candidates become rewards of the next update, if it trains the writer by them.
    """
    admission, library = session.parts.admission, session.bank.library()
    assert admission is not None
    spent: Counter[str] = Counter()
    candidates = proposal.without(library.admission.barred)
    config = session.config.bank
    replays = partial(replay, session, spent) if config is not None and config.admission.needs_replay else _unstated
    decision = admission.decide(candidates, library, replays, session.pending.revision)
    update = session.config.update
    trains = update is not None and update.trains_writer("replay")
    metrics = _reward(session, proposal, decision) if trains else {}
    return Result(decision, metrics, spent=apart(spent, "judging"))


def _unstated(trials: Sequence[Trial], replicas: int) -> Sequence[Sequence[float]]:
    """Replay for an admission that says it needs none: nobody has checked that the environment repeats."""
    raise CoevoError("the admission replays without saying so: state needs_replay = True in its class")


def _reward(session: Session, proposal: Proposal, decision: Decision) -> dict[str, float]:
    """Reward the writer's answers in the next update, and count the lessons whose tokens are not found."""
    tokenizer, gains = session.parts.worker.engine.policy.tokenizer, gains_of(decision.judged)
    # The configuration is refused where another model writes.
    assert session.parts.writing is not None
    rewarded = session.parts.writing.rewarded = replayed(proposal.writer_answers, gains, tokenizer)
    return {"policy/writer/unmatched": float(unmatched(proposal.writer_answers, gains, rewarded))}


@untracked("trial")
def weigh(session: Session, tried: TreatmentGroups | None) -> Result[None]:
    """Add this iteration's rewards to the sums of the candidates on trial.

    ``bank/trial/seen_share`` is the share of the treated episodes that saw their candidate in a prompt.
    ``bank/trial/success_lost`` is the success that trying costs, as a share of all episodes: what the treated halves
    lack compared with the control halves. Below 0, trying has gained.
    """
    if tried is None:
        return Result(None)
    ended = session.ended
    groups = {trial.entry.id: tried.groups(ended, trial.entry.id) for trial in session.bank.trials}
    session.bank.trials = [trial.after(groups[trial.entry.id]) for trial in session.bank.trials]
    saw = [pair.saw for pairs in chain(*groups.values()) for pair in pairs]
    counts = {
        "candidates": len(groups),
        "groups": sum(map(len, groups.values())),
        "seen_share": fmean(saw) if saw else 0.0,
        "success_lost": _lost(tried, ended),
    }
    return Result(None, {f"bank/trial/{name}": float(count) for name, count in counts.items()})


def _lost(tried: TreatmentGroups, episodes: Sequence[Episode]) -> float:
    sides: dict[str, tuple[list[float], list[float]]] = {}
    for episode in episodes:
        if tried.sees(episode.replica):
            treated = tried.treats(episode.task.id, episode.replica)
            sides.setdefault(episode.task.id, ([], []))[treated].append(float(episode.success))
    lost = [len(ours) * (fmean(theirs) - fmean(ours)) for theirs, ours in sides.values() if ours and theirs]
    return sum(lost) / len(episodes) if episodes else 0.0


def trial_is_over(session: Session) -> bool:
    """Report whether a candidate's trial has ended, so that it has to be judged; a bank changes with a revision."""
    config = trial_config(session)
    return (
        config is not None
        and session.due.bank()
        and session.due.commit()
        and any(trial.iterations >= config.iterations for trial in session.bank.trials)
    )


@stage("gate candidates")
def gate_candidates(session: Session, proposal: Proposal) -> None:
    """Hold back candidates that say nothing, say too much, or stem from an evaluation, and operations that do."""
    if proposal.entries:
        check_candidates(proposal.entries, session.stores.paths.quarantine)
    if proposal.edits:
        check_edits(proposal.edits, session.stores.paths.quarantine)
