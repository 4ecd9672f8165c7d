"""Pending decisions of a workspace: admissions of its runs, and promotions of its models."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coevo.flows.history.history import time_of
from coevo.flows.history.revision_reference import Reading, Reference, reading
from coevo.flows.history.run_summaries import readable
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import waits
from coevo.lineage.workspace import Workspace
from coevo.memory.admission.pending_admission import Pending
from coevo.memory.bank.diff import BankDiff, diff_entries
from coevo.memory.bank_state import after
from coevo.records.episode import Episode
from coevo.tasks.publish.mlflow.tracking_store import tracking_store
from coevo.tasks.publish.proposal_page import proposal_page, sampled
from coevo.tasks.revision_artifacts import episodes_of
from coevo.tasks.run.approval import FOLDER, read_proposal, required

if TYPE_CHECKING:
    from coevo.tasks.package.champion import PendingVersion
from coevo.flows.upkeep.change_by_hand import changing
from coevo.lineage.scratch import scratch_directory
from coevo.lineage.trust import Consent, confirmed_before
from coevo.tasks.run.approval import Vote, decide


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending admission or promotion.

    Attributes:
        what: ``RUN@N`` or ``MODEL/VERSION``.
        kind: ``admission`` or ``promotion``.
        since: time of the proposal, ISO 8601 in UTC; None if unknown.
        says: details as JSON values.
    """

    what: str
    kind: str
    since: str | None
    says: Mapping[str, Any]


def waiting(workspace: Workspace) -> Iterator[Waiting]:
    """All that is pending, runs first."""
    for one in readable(workspace):
        if one.revisions and waits(one.revisions[-1]):
            with reading(one.paths.name, workspace) as opened:
                yield _admission(opened, one.revisions[-1])
    if os.environ.get("MLFLOW_TRACKING_URI") or (workspace.root / "mlflow.db").is_file():
        from coevo.tasks.package.champion import asked

        yield from map(_promotion, asked(tracking_store(workspace.root)))


def page(what: str, workspace: Workspace) -> str:
    """Prefect's page of a pending admission.

    Raises:
        CoevoError: the admission is not pending.
    """
    with reading(Reference.parse(what).run, workspace) as opened:
        pending_revision(opened, what)
        entries = opened.bank().active()
        episodes = episodes_of(opened.lineage, opened.manifest.revision, opened.paths.scratch)
        return proposal_page(opened.name, _pending(opened), entries, episodes)


def proposed_changes(run: str, workspace: Workspace) -> tuple[Pending, BankDiff, list[Episode]]:
    """A pending admission, what it would change in the bank, and some of the episodes behind it.

    Raises:
        CoevoError: the admission is not pending.
    """
    with reading(run, workspace) as opened:
        pending_revision(opened, run)
        pending, entries = _pending(opened), opened.bank().active()
        played = episodes_of(opened.lineage, opened.manifest.revision, opened.paths.scratch)
        return pending, diff_entries(entries, after(entries, pending.decision.entries)), sampled(pending, played)


def pending_revision(opened: Reading, what: str) -> int | None:
    """Number of the revision in the reference; None if it names none.

    Raises:
        CoevoError: that revision has nothing pending.
    """
    revision = Reference.parse(what).number(opened.lineage)
    required(opened.manifest, revision, opened.paths.name)
    return revision


def _pending(opened: Reading) -> Pending:
    return read_proposal(opened.lineage, opened.manifest)


def _admission(opened: Reading, head: Manifest) -> Waiting:
    pending, entries = _pending(opened), opened.bank().active()
    found = diff_entries(entries, after(entries, pending.decision.entries))
    judged = [each.verdict for each in pending.decision.judged]
    says = {
        "revision": head.revision,
        "proposal": head.artifacts[FOLDER],
        "added": [{"id": entry.id, "strategy": entry.strategy} for entry in found.added],
        "edited": [{"id": new.id, "strategy": new.strategy, "was": was.strategy} for was, new in found.edited],
        "retired": [{"id": entry.id, "strategy": entry.strategy} for entry in found.retired],
        "replay": [
            {
                "difference": said.difference,
                "low": said.interval[0],
                "high": said.interval[1],
                "admitted": said.admitted,
            }
            for said in judged
        ],
    }
    return Waiting(opened.name, "admission", time_of(head), says)


def _promotion(found: "PendingVersion") -> Waiting:
    return Waiting(found.version.name, "promotion", None, {"over": found.over, "gate": dict(found.gate)})


def is_promotion(what: str) -> bool:
    """Report whether the text names a model's version, not a run."""
    return "/" in what


def decide_run(what: str, vote: Vote, workspace: Workspace) -> Manifest:
    """Commit a decision about ``RUN[@N]`` as a revision of the run.

    Raises:
        CoevoError: the run has nothing pending, another process writes to it, or its cursor is wrong.
    """
    reference = Reference.parse(what)
    paths = workspace.existing(reference.run)
    with reading(reference.run, workspace) as opened:
        revision = pending_revision(opened, what)
    with changing(paths, workspace) as (bank, lineage):
        return decide(vote, revision, paths, bank, lineage)


def decide_model(what: str, vote: Vote, workspace: Workspace, consent: Consent = confirmed_before) -> str:
    """Decide about ``MODEL/VERSION``, which has to be proven before it is approved; return its name.

    Raises:
        CoevoError: the version is not pending, is neither proven nor confirmed, or the model has another champion now.
    """
    from coevo.flows.packages.proof import prove
    from coevo.tasks.package.champion import check_pending, settle
    from coevo.tasks.package.model_registry import find

    store = tracking_store(workspace.root)
    version = find(store, what)
    check_pending(store, version)
    if vote.approved:
        with scratch_directory(workspace.root) as scratch:
            prove(store, [version], scratch, workspace, consent)
    settle(store, version, vote)
    return version.name
