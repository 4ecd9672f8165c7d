"""The loop: policy and experience evolve together (CoEvo-RL Algorithm 1), one durable revision after another."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from prefect import flow

from coevo.flows.console.interrupt import committing
from coevo.flows.gateway.serving_agents import serving_agents
from coevo.flows.servers.end_state import name_end
from coevo.flows.servers.stale import mark_crashed
from coevo.lineage.status import FIRST_EVALUATION, record_reason, record_stage
from coevo.memory.writers.writer import Proposal
from coevo.records.episode import Episode
from coevo.tasks.commit import Committer
from coevo.tasks.play.treatment_groups import TreatmentGroups
from coevo.tasks.preflight.duration import report_pace
from coevo.tasks.publish.reporter import reporter
from coevo.tasks.run.limit import RESERVE, Limit
from coevo.tasks.run.open_run import open_session
from coevo.tasks.session import Session
from coevo.tasks.stage import grouping
from coevo.tasks.steps.bank_steps import admit, gate_candidates, judge, trial_is_over, update_statistics, weigh, write
from coevo.tasks.steps.evaluate import evaluate, gate_panels, internalize
from coevo.tasks.steps.policy_steps import advantage, gate_advantages, gate_episodes, rollout, sample, shape, update
from coevo.tasks.steps.retire import retire


@flow(name="coevolve", persist_result=False, on_completion=[name_end], on_crashed=[name_end])
def coevolve(
    run: str,
    workspace: str,
    iterations: int | None = None,
    max_hours: float | None = None,
    unattended: bool = False,
    accept_change: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> str | None:
    """Continue a run from its last committed revision to its last iteration, or to a limit; return the reached limit.

    Prefect shows the parameters, so they are plain values; its flow run ends in a state with the run's status. Reports
    go to the reporter of ``reporting_to``. The run's own configuration counts; ``settings`` show it on Prefect's page.
    """
    del settings
    limit = Limit(iterations, max_hours, RESERVE if unattended else 0)
    with (
        committing(),
        open_session(run, Path(workspace), reporter(), accept_change) as session,
        serving_agents(session),
        closing(Committer(session)) as committer,
    ):
        mark_crashed(run, workspace)
        if session.is_new:
            begin(session, committer)
        while session.iteration < session.config.iterations and limit.allows(session):
            iterate(session, committer)
        record_reason(session.stores.paths, limit.reason)
    return limit.reason


@grouping("start")
def begin(session: Session, committer: Committer) -> None:
    """Measure the policy that the run starts from, and commit it as revision 0."""
    record_stage(session.stores.paths, FIRST_EVALUATION)
    gate_panels(session)
    session.pending.measure(evaluate(session))
    if session.config.evaluation.internalization:
        session.pending.record(internalize(session))
    committer.begin()


@grouping("iteration")
def iterate(session: Session, committer: Committer) -> None:
    """Run one policy update and the steps that are due with it.

    The previous revision is committed during the rollout. A gate runs beside the steps that use its batch, and has to
    pass before their results are evaluated or committed.
    """
    record = session.pending.record
    stage = f"iteration {session.iteration + 1} of {session.config.iterations}"
    record_stage(session.stores.paths, stage, session.pending.revision)
    if session.source is not None:
        committer.wait()  # agents are served what is committed
    batch = record(sample(session))
    episodes = record(rollout(session, batch))
    committer.wait()
    with gate_episodes.beside(session, episodes):
        evolve_policy(session, episodes, batch.tried)
        record(update_statistics(session))
        record(weigh(session, batch.tried))
        if session.due.writer() or trial_is_over(session):
            evolve_bank(session)
    measure(session)
    report_pace(session)
    ends_revision = session.due.commit()
    session.iteration += 1
    if ends_revision:
        committer.begin()


def measure(session: Session) -> None:
    """Play the held-out panels, if they are due."""
    due = session.due
    if due.evaluation() or due.internalization():
        gate_panels(session)
    if due.evaluation():
        session.pending.measure(evaluate(session))
    if due.internalization():
        session.pending.record(internalize(session))


def evolve_policy(session: Session, episodes: Sequence[Episode], tried: TreatmentGroups | None) -> None:
    """Shape the episodes, keep those that ended, and update the policy as long as it learns.

    Args:
        tried: candidates that some groups tried; only episodes with the same context are compared.
    """
    record = session.pending.record
    shaped = record(shape(session, episodes))
    session.finish([*shaped.episodes, *shaped.rest])
    if session.due.policy():
        targets = record(advantage(session, shaped, tried))
        with gate_advantages.beside(session, shaped.episodes, targets.advantages):
            record(update(session, shaped.episodes, targets))


def evolve_bank(session: Session) -> None:
    """Write candidates from the latest episodes and admit what passes; when only a trial ended, skip the writer."""
    record = session.pending.record
    proposal = record(write(session)) if session.due.writer() else Proposal()
    with gate_candidates.beside(session, proposal):
        decision = record(retire(session, record(judge(session, proposal))))
    record(admit(session, proposal, decision))
