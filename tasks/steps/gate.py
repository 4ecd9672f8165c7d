"""Gates of the loop. A batch that fails is quarantined and stops the run."""

from collections.abc import Sequence

from coevo.memory.writers.writer import Proposal
from coevo.models.advantages.trajectory import Advantages
from coevo.records.episode import Episode
from coevo.tasks.gates.entries import check_candidates, check_edits
from coevo.tasks.gates.environment_data import check_panel
from coevo.tasks.gates.episodes import check_advantages, check_episodes
from coevo.tasks.iteration.held_out import limits_at, panel_of
from coevo.tasks.session import Session
from coevo.tasks.stage import stage


@stage("gate panels")
def gate_panels(session: Session) -> None:
    """Hold back a held-out panel that is due and is not what it should be."""
    for name in session.due.panels():
        check_panel(panel_of(session, name), session.stores.paths.quarantine)


@stage("gate episodes")
def gate_episodes(session: Session, episodes: Sequence[Episode]) -> None:
    """Hold back episodes that are not whole groups of training episodes within their limits."""
    check_episodes(episodes, limits_at(session, session.here), session.stores.paths.quarantine)


@stage("gate advantages")
def gate_advantages(session: Session, episodes: Sequence[Episode], advantages: Advantages) -> None:
    """Hold back advantages that are not finite, or not centred where the estimator centres them."""
    check_advantages(episodes, advantages, session.stores.paths.quarantine)


@stage("gate candidates")
def gate_candidates(session: Session, proposal: Proposal) -> None:
    """Hold back candidates that say nothing, say too much, or stem from an evaluation, and operations that do."""
    if proposal.entries:
        check_candidates(proposal.entries, session.stores.paths.quarantine)
    if proposal.edits:
        check_edits(proposal.edits, session.stores.paths.quarantine)
