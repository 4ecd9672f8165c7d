"""Decisions of a person on proposals. Each decision is a revision.

A run whose ``approval.admission`` is ``person`` ends with the revision that has something to decide: its state says
``waiting``, and its artifact ``proposal`` holds what would change. The process ends, and with it the run's lock. Yes or
no is then committed like anything else, so a decision is there as a whole or not at all, whatever kills that. Who said
so is observed, and no part of the state: it changes nothing that follows.
"""

from dataclasses import dataclass
from pathlib import Path

from coevo.lineage.atomic_files import write_atomically
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.manifest_schema import MAX_WORD_CHARS
from coevo.lineage.revision.retention import trail_since
from coevo.lineage.status import waits
from coevo.lineage.workspace import RunPaths
from coevo.memory.admission.pending_admission import Pending
from coevo.memory.bank.bank import Bank
from coevo.memory.bank_state import BankState
from coevo.records.episode import Episode
from coevo.records.inert import shown
from coevo.tasks.revision_artifacts import episodes_of
from coevo.tasks.run.by_hand import HandMadeChange, commit_by_hand
from coevo.tasks.steps.bank_steps import counts
from coevo.utilities.errors import CoevoError


@dataclass(frozen=True, slots=True)
class Vote:
    """A person's decision.

    Attributes:
        approved: yes or no.
        by: name of the person.
    """

    approved: bool
    by: str


FOLDER = "proposal"
"""Name of the artifact; it stays after the decision, which names its content."""
FILE = "proposal.json"


def write_proposal(pending: Pending, staging: Path) -> None:
    """Stage what waits for the commit."""
    directory = staging / FOLDER
    directory.mkdir(parents=True)
    write_atomically(directory / FILE, pending.text())


def read_proposal(lineage: Lineage, head: Manifest) -> Pending:
    """Proposal pending at a revision.

    Raises:
        CoevoError: it is not what was committed.
    """
    return Pending.parse(lineage.artifacts.files(head, FOLDER)[FILE].read_text(encoding="utf-8"))


def decide(vote: Vote, revision: int | None, paths: RunPaths, bank: Bank, lineage: Lineage) -> Manifest:
    """Commit a person's decision; for the holder of the run's lock, after recovery.

    The revision has no episodes and no evaluation of its own; what enters was created in it.

    Args:
        vote: whether the proposal changes the bank; where not, it is kept as one that was turned down.
        revision: the one that the person has looked at; None for the last one, whichever it is.
        paths: the run.
        bank: its bank.
        lineage: its lineage.

    Raises:
        CoevoError: nothing waits, or another revision does.
    """
    head = required(lineage.history.head(), revision, paths.name)
    pending = read_proposal(lineage, head).as_of(head.revision + 1)
    taken, config = pending if vote.approved else pending.rejected(), paths.read_config()
    state = BankState.stored(bank, config.bank, config.clusters)
    before = {entry.id for entry in state.entries}
    state.apply(taken.decision, _sources(state, head, paths, lineage))
    figures = counts(before, {entry.id for entry in state.entries}, pending.proposed)
    said = {"revision": head.revision, "proposal": head.artifacts[FOLDER], "approved": vote.approved}
    fields = {"waiting": False, "approval": said} | ({"fired": head.revision} if pending.fired else {})
    change = HandMadeChange(state.change(), fields, figures, observed={"decided_by": shown(vote.by)[:MAX_WORD_CHARS]})
    return commit_by_hand(change, paths, bank, lineage)


def required(head: Manifest | None, revision: int | None, run: str) -> Manifest:
    """The revision that waits.

    Raises:
        CoevoError: none does, or another one.
    """
    if head is None or not waits(head):
        raise CoevoError(f"run {run!r} has nothing to approve; `coevo approve --list` shows what is pending")
    if revision not in (None, head.revision):
        raise CoevoError(f"{run}@{revision} is not pending, {run}@{head.revision} is: look at that one first")
    return head


def _sources(state: BankState, head: Manifest, paths: RunPaths, lineage: Lineage) -> list[Episode]:
    """Episodes that the candidates were written from; only clusters that retrieval reads need them."""
    if state.pools is None:
        return []
    trail = trail_since(lineage.history.manifest, head, int(head.state["fired"]))
    found = (episode for revision in trail for episode in episodes_of(lineage, revision, paths.scratch))
    return [episode for episode in found if episode.teaches]
