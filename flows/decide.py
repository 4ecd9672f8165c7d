"""Decisions about pending admissions of runs and pending promotions of models."""

from coevo.flows.history.revision_reference import Reference, reading
from coevo.flows.pending import pending_revision
from coevo.flows.upkeep.change_by_hand import changing
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.scratch import scratch_directory
from coevo.lineage.trust import Consent, confirmed_before
from coevo.lineage.workspace import Workspace
from coevo.tasks.publish.mlflow.tracking_store import tracking_store
from coevo.tasks.run.approval import decide
from coevo.tasks.run.waiting import Vote


def is_promotion(what: str) -> bool:
    """Report whether the text names a model's version, not a run."""
    return "/" in what


def decide_run(what: str, vote: Vote, place: Workspace) -> Manifest:
    """Commit a decision about ``RUN[@N]`` as a revision of the run.

    Raises:
        CoevoError: the run has nothing pending, another process writes to it, or its cursor is wrong.
    """
    reference = Reference.parse(what)
    paths = place.existing(reference.run)
    with reading(reference.run, place) as opened:
        revision = pending_revision(opened, what)
    with changing(paths, place) as (bank, lineage):
        return decide(vote, revision, paths, bank, lineage)


def decide_model(what: str, vote: Vote, place: Workspace, consent: Consent = confirmed_before) -> str:
    """Decide about ``MODEL/VERSION``, which has to be proven before it is approved; return its name.

    Raises:
        CoevoError: the version is not pending, is neither proven nor confirmed, or the model has another champion now.
    """
    from coevo.flows.packages.proof import prove
    from coevo.tasks.package.champion import check_pending, settle
    from coevo.tasks.package.model_registry import find

    store = tracking_store(place.root)
    version = find(store, what)
    check_pending(store, version)
    if vote.approved:
        with scratch_directory(place.root) as scratch:
            prove(store, [version], scratch, place, consent)
    settle(store, version, vote)
    return version.name
