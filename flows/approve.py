"""What waits for a person, in a workspace: admissions of its runs, and promotions of its models."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flows.history import time_of
from flows.publishing import publish_if_quick
from flows.reference import Reading, Reference, reading
from flows.standing import readable
from lineage.cursor import Cursor
from lineage.lineage import Lineage
from lineage.lock import writer_lock
from lineage.manifest import Manifest
from lineage.workspace import Workspace
from memory.diff import diff
from memory.pending import Pending
from memory.store import Bank
from records.arrow import entries_to_table
from tasks.approval import FOLDER, decide, read_proposal, required
from tasks.episodes import episodes_of
from tasks.proposal_page import after, proposal_page
from tasks.tracking.store import tracking_store
from tasks.waiting import Vote, waits

if TYPE_CHECKING:
    from tasks.champion import Asked


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that waits.

    Attributes:
        what: ``RUN@N`` or ``MODEL/VERSION``.
        kind: ``admission`` or ``promotion``.
        since: when it began to, ISO 8601 in UTC; None where that is not known.
        says: what there is to know of it, as JSON values.
    """

    what: str
    kind: str
    since: str | None
    says: Mapping[str, Any]


def is_promotion(what: str) -> bool:
    """Whether a model's version is named, and no run."""
    return "/" in what


def waiting(place: Workspace) -> Iterator[Waiting]:
    """All that waits, runs first."""
    for one in readable(place):
        if one.revisions and waits(one.revisions[-1]):
            with reading(one.paths.name, place) as opened:
                yield _admission(opened, one.revisions[-1])
    if os.environ.get("MLFLOW_TRACKING_URI") or (place.root / "mlflow.db").is_file():
        from tasks.champion import asked

        yield from map(_promotion, asked(tracking_store(place.root)))


def page(what: str, place: Workspace) -> str:
    """What Prefect's page says of an admission that waits.

    Raises:
        CoevoError: it does not wait.
    """
    with reading(Reference.parse(what).run, place) as opened:
        _check(opened, what)
        entries = opened.bank().active()
        episodes = episodes_of(opened.lineage, opened.manifest.revision, opened.paths.scratch)
        return proposal_page(opened.name, _pending(opened), entries, episodes)


def decide_run(what: str, vote: Vote, place: Workspace) -> Manifest:
    """Commit a decision about ``RUN[@N]`` as a revision of the run.

    Raises:
        CoevoError: it does not wait, another process writes to the run, or its cursor is wrong.
    """
    reference = Reference.parse(what)
    paths = place.existing(reference.run)
    with reading(reference.run, place) as opened:
        revision = _check(opened, what)
    with writer_lock(paths), Lineage.open(paths.lineage, place.cache) as lineage:
        bank = Bank(paths.bank)
        lineage.recover(bank)
        Cursor(paths.published).check(lineage)
        made = decide(vote, revision, paths, bank, lineage)
        publish_if_quick(place, paths, lineage, bank)
    return made


def decide_model(what: str, vote: Vote, place: Workspace) -> str:
    """Decide about ``MODEL/VERSION``; its name.

    Raises:
        CoevoError: it does not wait, or the champion is another one by now.
    """
    from tasks.champion import settle
    from tasks.registry import find

    store = tracking_store(place.root)
    version = find(store, what)
    settle(store, version, vote)
    return version.name


def _check(opened: Reading, what: str) -> int | None:
    """The revision that is named, if any, once it is sure that it waits."""
    revision = Reference.parse(what).number(opened.lineage)
    required(opened.manifest, revision, opened.paths.name)
    return revision


def _pending(opened: Reading) -> Pending:
    return read_proposal(opened.lineage, opened.manifest)


def _admission(opened: Reading, head: Manifest) -> Waiting:
    pending, entries = _pending(opened), opened.bank().active()
    found = diff(entries_to_table(entries), entries_to_table(after(entries, pending)))
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


def _promotion(found: "Asked") -> Waiting:
    return Waiting(found.version.name, "promotion", None, {"over": found.over, "gate": dict(found.gate)})
