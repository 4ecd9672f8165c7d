"""Open sessions on real stores, bank, writer and admission: without servers, and with a policy that stays."""

from contextlib import contextmanager

from support.player import player

from lineage.lineage import Lineage
from lineage.workspace import Workspace
from memory.admission.base import admission_of
from memory.change import BankChange
from memory.store import Bank
from memory.writers.base import writer_of
from records.task import key_by
from tasks.admit import admit
from tasks.commit import commit
from tasks.credit import credit
from tasks.evaluate import evaluate
from tasks.gate import episode_limits, gate_candidates, gate_episodes
from tasks.judge import judge
from tasks.open import position
from tasks.report import Silent
from tasks.rollout import rollout
from tasks.sample import sample
from tasks.seal import seal
from tasks.session import Parts, Session, Stores
from tasks.shape import shape
from tasks.write import write


@contextmanager
def opened(root, config, entries=(), writer=None, trainer=None, played=None):
    """A session on the stores as they are; where there are none, revision 0 is made with some entries."""
    place = Workspace(root)
    paths = place.existing("run") if (root / "runs").exists() else place.create("run", config)
    played = played or player()
    with Lineage.open(paths.lineage, place.cache) as lineage:
        bank = Bank(paths.bank)
        lineage.recover(bank)
        paths.clear_staging()
        head = lineage.head()
        if head is None:
            bank.merge(BankChange(entries=tuple(entries)))
        session = Session(config, parts(config, played, writer, trainer), Stores(paths, bank, lineage, None, Silent()))
        if head is None:
            (paths.staging / "policy").mkdir(parents=True)
            (paths.staging / "policy" / "weights").write_text("none")
            committed(session)
        else:
            position(session, head, paths.staging)
        yield session


def parts(config, played, writer, trainer):
    """The parts that a configuration names; those given stand in for its own."""
    limits, bank = episode_limits(config, played.env, 512), config.bank
    if bank is None:
        return Parts(played.env, played, trainer, None, None, limits)
    writer = writer or writer_of(bank.writer, key_by(bank.key))
    return Parts(played.env, played, trainer, writer, admission_of(bank.admission), limits)


def committed(session):
    """Its next revision, committed at once."""
    return commit(session.stores, seal(session))


def iterate(session):
    """One iteration, all but the update; what it has measured."""
    episodes = rollout(session, sample(session))
    gate_episodes(session, episodes)
    shape(session, episodes)
    credit(session)
    if session.writer_is_due():
        proposal = write(session)
        gate_candidates(session, proposal)
        admit(session, proposal, judge(session, proposal))
    if session.evaluation_is_due():
        evaluate(session)
    metrics = dict(session.draft.metrics)
    session.iteration += 1
    committed(session)
    return metrics
