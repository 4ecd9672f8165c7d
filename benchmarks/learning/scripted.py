"""A session of the loop whose policy is the environment's expert: it follows its notes, and guesses without one.

Writer, admission, retirement and retrieval are those of a run. Nothing but revision 0 is committed, so that an
iteration takes milliseconds.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

from coevo.configs.run_config import RunConfig
from coevo.envs.registry import make
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.models.engines.transformers.embedded_engine import embedded_engine
from coevo.models.policy.context import CONTEXT_WORDS
from coevo.models.policy.policy import build, save
from coevo.records.draws import extend, key
from coevo.records.episode import Completion, Episode
from coevo.tasks.commit import commit, freeze
from coevo.tasks.parts import Stores
from coevo.tasks.play.play import RolloutWorker, Running
from coevo.tasks.publish.publisher import Publisher
from coevo.tasks.publish.reporter import Silent
from coevo.tasks.run.assemble import assemble
from coevo.tasks.session import Session
from coevo.tasks.steps.bank_steps import admit, judge, update_statistics, write
from coevo.tasks.steps.policy_steps import rollout, sample, shape
from coevo.tasks.steps.retire import retire


class ExpertWorker(RolloutWorker):
    """Plays as the environment's expert does: it follows its notes, and guesses where they are silent."""

    def play_turn(self, running: Sequence[Running]) -> None:
        """Play one turn of each attempt."""
        moments = [live.moment(self.context) for live in running]
        answers = [
            self.env.expert(moment, extend(live.attempt.key, len(live.turns)))
            for live, moment in zip(running, moments, strict=True)
        ]
        steps = self.env.step([live.state for live in running], [answer.action for answer in answers])
        for live, answer, step in zip(running, answers, steps, strict=True):
            live.advance((1,), Completion((2,), (-0.5,), f"act {answer.action}", True), answer, step)


@contextmanager
def scripted(root: Path, config: RunConfig) -> Iterator[Session]:
    """A session after revision 0, in a workspace of its own; the weights that it commits are not used."""
    place = Workspace(root)
    paths, env = place.create("scripted", config), make(config.env)
    policy = build(config.policy, (*env.vocabulary, *CONTEXT_WORDS), key("scripted"))
    with Lineage.open(paths.lineage, place.cache) as lineage:
        parts = assemble(config, env, embedded_engine(policy, config.rollout), None, None)
        expert = ExpertWorker(env, parts.worker.context, parts.worker.engine, config.rollout.max_turns)
        nothing = cast(Publisher, None)  # revision 0 is committed, and nothing is published
        stores = Stores(paths, Bank(paths.bank), lineage, nothing, Silent())
        session = Session(config, replace(parts, worker=expert), stores)
        save(policy, paths.staging / "policy")
        commit(stores, freeze(session))
        yield session


def iterate(session: Session) -> list[Episode]:
    """One iteration of a frozen policy, in which the writer fires; its episodes."""
    record = session.pending.record
    played = record(shape(session, record(rollout(session, record(sample(session))))))
    session.finish(played.episodes)
    record(update_statistics(session))
    proposal = record(write(session))
    record(admit(session, proposal, record(retire(session, record(judge(session, proposal))))))
    session.iteration += 1
    session.pending.episodes.clear()
    return list(played.episodes)
