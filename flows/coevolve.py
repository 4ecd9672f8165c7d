"""The loop: policy and experience evolve together (CoEvo-RL Algorithm 1), one durable revision after another."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from prefect import flow

from flows.stale import mark_crashed
from records.episode import Episode
from tasks.admit import admit
from tasks.advantage import advantage
from tasks.committer import Committer
from tasks.credit import credit
from tasks.evaluate import evaluate
from tasks.gate import gate_advantages, gate_candidates, gate_episodes, gate_panels
from tasks.judge import judge
from tasks.limit import Limit
from tasks.open import open_session
from tasks.report import Reporter
from tasks.rollout import rollout
from tasks.sample import sample
from tasks.session import Session
from tasks.shape import shape
from tasks.stage import recording
from tasks.update import update
from tasks.write import write


@flow(name="coevolve", validate_parameters=False, persist_result=False)
def coevolve(
    run: str, workspace: str, reporter: Reporter, accept_change: bool = False, limit: Limit | None = None
) -> None:
    """Continue a run from its last committed revision to its last iteration, or to a limit, which then says why."""
    limit = limit or Limit()
    with (
        open_session(run, Path(workspace), reporter, accept_change) as session,
        recording(session.seconds),
        closing(Committer(session)) as committer,
    ):
        mark_crashed(run)
        if session.is_new():
            gate_panels(session)
            evaluate(session)
            committer.begin()
        while session.iteration < session.config.iterations and limit.allows(session):
            iterate(session, committer)


def iterate(session: Session, committer: Committer) -> None:
    """One policy update, and whatever is due with it.

    The revision before is committed beside the rollout. A gate is checked beside what goes on with its batch, and
    waited for before any of that is evaluated or lasts.
    """
    tasks = sample(session)
    episodes = rollout(session, tasks)
    committer.wait()
    with gate_episodes.beside(session, episodes):
        evolve_policy(session, episodes)
        credit(session)
        if session.writer_is_due():
            evolve_bank(session)
    if session.evaluation_is_due():
        gate_panels(session)
        evaluate(session)
    session.iteration += 1
    if session.commit_is_due():
        committer.begin()


def evolve_policy(session: Session, episodes: Sequence[Episode]) -> None:
    """Update the policy from what was played, as long as it learns."""
    shaped, rewards = shape(session, episodes)
    if session.learns():
        targets = advantage(session, shaped, rewards)
        with gate_advantages.beside(session, shaped, targets.advantages):
            update(session, shaped, targets)


def evolve_bank(session: Session) -> None:
    """Write experience from what was played lately, and admit what passes."""
    proposal = write(session)
    with gate_candidates.beside(session, proposal):
        decision = judge(session, proposal)
    admit(session, proposal, decision)
