"""The loop in this process: real bank, lineage, writer and admission, without servers and without a trainer."""

from contextlib import contextmanager

from lineage.lineage import Lineage
from lineage.workspace import Workspace
from memory.admission.base import admission_of
from memory.store import Bank
from memory.writers.base import writer_of
from records.task import key_by
from tasks.admit import admit
from tasks.commit import commit
from tasks.credit import credit
from tasks.evaluate import evaluate
from tasks.gate import episode_limits, gate_candidates, gate_episodes
from tasks.judge import judge
from tasks.report import Silent
from tasks.rollout import rollout
from tasks.sample import sample
from tasks.session import Parts, Session, Stores
from tasks.shape import shape
from tasks.write import write


@contextmanager
def opened(root, config, player):
    """A session of a fresh run after revision 0."""
    place = Workspace(root)
    paths = place.create("run", config)
    key = key_by(config.bank.key)
    with Lineage.open(paths.lineage, place.cache) as lineage:
        limits = episode_limits(config, player.env, 512)
        parts = Parts(
            player.env, player, None, writer_of(config.bank.writer, key), admission_of(config.bank.admission), limits
        )
        session = Session(config, parts, Stores(paths, Bank(paths.bank), lineage, None, Silent()))
        (paths.staging / "policy").mkdir(parents=True)
        (paths.staging / "policy" / "weights").write_text("none")
        commit(session)
        yield session


def iterate(session):
    """One iteration, all but the update; what it has measured."""
    episodes = rollout(session, sample(session))
    gate_episodes(session, episodes)
    shape(session, episodes)
    credit(session, episodes)
    if session.writer_is_due():
        proposal = write(session)
        gate_candidates(session, proposal)
        admit(session, proposal, judge(session, proposal))
    if session.evaluation_is_due():
        evaluate(session)
    metrics = dict(session.draft.metrics)
    session.iteration += 1
    commit(session)
    return metrics
