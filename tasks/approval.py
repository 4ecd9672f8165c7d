"""What waits for a person, and a person's decision, which is a revision of its own.

A run whose ``approval.admission`` is ``person`` ends with the revision that has something to decide: its state says
``waiting``, and its artifact ``proposal`` holds what would change. The process ends, and with it the run's lock. Yes or
no is then committed like anything else, so a decision is there as a whole or not at all, whatever kills that. Who said
so is observed, and no part of the state: it changes nothing that follows.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from configs.errors import CoevoError
from configs.run import RunConfig
from lineage.files import write_atomically
from lineage.lineage import Lineage
from lineage.manifest import Manifest
from lineage.retention import trail_since
from lineage.workspace import RunPaths
from memory.change import BankChange
from memory.clusters import Cluster, Clusters
from memory.pending import Pending
from memory.store import Bank
from tasks.by_hand import FRESH, OWN
from tasks.counts import counts
from tasks.episodes import episodes_of, write_episodes
from tasks.recognise import associate
from tasks.waiting import Vote, waits

FOLDER = "proposal"
"""Name of the artifact; it stays after the decision, which names its content."""
FILE = "proposal.json"


def waiting(config: RunConfig, proposed: Pending | None) -> dict[str, object]:
    """What the state says of it; nothing in a run that never waits."""
    return {} if config.approval.admission == "none" else {"waiting": proposed is not None}


def write_proposal(pending: Pending, staging: Path) -> None:
    """Stage what waits for the commit."""
    directory = staging / FOLDER
    directory.mkdir(parents=True)
    write_atomically(directory / FILE, pending.text())


def read_proposal(lineage: Lineage, head: Manifest) -> Pending:
    """What waits at a revision.

    Raises:
        CoevoError: it is not what was committed.
    """
    return Pending.parse(lineage.files(head, FOLDER)[FILE].read_text(encoding="utf-8"))


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
    head = required(lineage.head(), revision, paths.name)
    pending = read_proposal(lineage, head).as_of(head.revision + 1)
    taken = pending if vote.approved else pending.rejected()
    before = {entry.id for entry in bank.active()}
    paths.clear_staging()
    write_episodes([], paths.staging / "episodes")
    bank.merge(_change(taken, head, paths, bank, lineage))
    figures = counts(before, {entry.id for entry in bank.active()}, pending.proposed)
    state = _state(head, vote.approved) | {"metrics": figures, "tables": bank.hashes()}
    observed = {"run": paths.name, "tables": bank.versions(), "metrics": {}, "decided_by": vote.by}
    return lineage.commit({"episodes": paths.staging / "episodes"}, state, observed)


def required(head: Manifest | None, revision: int | None, run: str) -> Manifest:
    """The revision that waits.

    Raises:
        CoevoError: none does, or another one.
    """
    if head is None or not waits(head):
        raise CoevoError(f"run {run!r} waits for nobody: see what does with `coevo approve --list`")
    if revision not in (None, head.revision):
        raise CoevoError(f"{run}@{revision} does not wait, {run}@{head.revision} does: look at that one first")
    return head


def _change(taken: Pending, head: Manifest, paths: RunPaths, bank: Bank, lineage: Lineage) -> BankChange:
    config = paths.read_config()
    update = None if config.bank is None else config.bank.utility
    return replace(taken.change(bank.stats(), update), clusters=_clusters(taken, config, head, paths, bank, lineage))


def _clusters(
    taken: Pending, config: RunConfig, head: Manifest, paths: RunPaths, bank: Bank, lineage: Lineage
) -> tuple[Cluster, ...]:
    """The clusters that entries join or leave."""
    if config.clusters is None or config.bank is None or config.bank.retrieval.type != "cluster":
        return ()
    clusters = Clusters(config.clusters, bank.clusters())
    trail = trail_since(lineage.manifest, head, int(head.state["fired"]))
    episodes = [episode for revision in trail for episode in episodes_of(lineage, revision, paths.scratch)]
    associate(clusters, taken.decision.entries, episodes)
    return tuple(clusters.changed())


def _state(head: Manifest, approved: bool) -> dict[str, Any]:
    kept = {name: value for name, value in head.state.items() if name not in OWN}
    said = {"revision": head.revision, "proposal": head.artifacts[FOLDER], "approved": approved}
    return {**kept, **FRESH, "waiting": False, "approval": said, "fired": head.revision}
