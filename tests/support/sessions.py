"""Open sessions on real stores, bank, writer and admission: without servers, and with a policy that stays."""

from contextlib import contextmanager

from support.worker import worker

from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.admission.admission import admission_of
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.writers.writer import Proposal, writer_of
from coevo.records.task import key_by
from coevo.tasks.commit import commit, freeze
from coevo.tasks.iteration.held_out import episode_limits
from coevo.tasks.parts import Parts, Stores
from coevo.tasks.publish.reporter import Silent
from coevo.tasks.run.open_run import position
from coevo.tasks.session import Session
from coevo.tasks.steps.bank_steps import admit, gate_candidates, judge, trial_is_over, update_statistics, weigh, write
from coevo.tasks.steps.evaluate import evaluate
from coevo.tasks.steps.policy_steps import gate_episodes, rollout, sample, shape
from coevo.tasks.steps.retire import retire


@contextmanager
def opened(root, config, entries=(), writer=None, trainer=None, played=None):
    """A session on the stores as they are; where there are none, revision 0 is made with some entries."""
    workspace = Workspace(root)
    paths = workspace.existing("run") if (root / "runs").exists() else workspace.create("run", config)
    played = played or worker()
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        bank = Bank(paths.bank)
        lineage.recover(bank)
        paths.clear_staging()
        head = lineage.history.head()
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
    positions = played.engine.longest_prompt + config.rollout.sampling.max_new_tokens
    limits, bank = episode_limits(config, played.env, positions), config.bank
    if bank is None:
        return Parts(played.env, played, trainer, None, None, limits)
    writer = writer or writer_of(bank.writer, key_by(bank.key))
    return Parts(played.env, played, trainer, writer, admission_of(bank.admission), limits)


def committed(session):
    """Its next revision, committed at once."""
    return commit(session.stores, freeze(session))


def do(session, step, *arguments):
    """The value of a step; its metrics are recorded, as the loop does it."""
    return session.pending.record(step(session, *arguments))


def batch(session):
    """The episodes of an iteration."""
    return played(session)[1]


def played(session):
    """The tasks of an iteration with the candidates that they try, and their episodes."""
    drawn = do(session, sample)
    return drawn, do(session, rollout, drawn)


def shaped(session, episodes):
    """Episodes with their shaping and rewards, kept for the commit and the writer."""
    found = do(session, shape, episodes)
    session.finish(found.episodes)
    return found


def iterate(session):
    """One iteration, all but the update; what it has measured."""
    drawn, episodes = played(session)
    gate_episodes(session, episodes)
    shaped(session, episodes)
    do(session, update_statistics)
    do(session, weigh, drawn.tried)
    if session.due.writer() or trial_is_over(session):
        proposal = do(session, write) if session.due.writer() else Proposal()
        gate_candidates(session, proposal)
        do(session, admit, proposal, do(session, retire, do(session, judge, proposal)))
    if session.due.evaluation():
        session.pending.measure(evaluate(session))
    metrics = dict(session.pending.metrics)
    session.iteration += 1
    committed(session)
    return metrics
