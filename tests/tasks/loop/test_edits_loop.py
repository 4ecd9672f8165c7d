"""JERP in the loop: two firings of its recipe on real stores, with an untrained policy, without servers or updates."""

import pytest
from attempts import SAFE, attempt
from support import sessions
from support.sessions import batch, do, shaped

from coevo.configs.load.load import load_recipe
from coevo.memory.bank.bank import why
from coevo.memory.writers.writer import Edit, Proposal
from coevo.tasks.gates.frame_gate import GateError
from coevo.tasks.steps.bank_steps import admit, gate_candidates, judge, update_statistics, write
from coevo.tasks.steps.policy_steps import gate_episodes

SMALL = [
    "warmstart=null", "update=null", "iterations=3", "rollout.tasks=2", "rollout.group_size=2", "rollout.max_turns=2",
    "evaluation.tasks=4",
]  # fmt: skip

KEY = "lotus/k"
"""Pool of the hand-written attempts."""


def opened(root):
    return sessions.opened(root, load_recipe("homerules-jerp", SMALL))


def iterate(session, found=()):
    """One iteration; ``found`` is played besides. Metrics of the draft."""
    episodes = batch(session)
    gate_episodes(session, episodes)
    shaped(session, episodes)
    session.finish(found)
    do(session, update_statistics)
    fire(session, do(session, write))
    session.iteration += 1
    metrics = dict(session.pending.metrics)
    sessions.committed(session)
    return metrics


def fire(session, proposal):
    gate_candidates(session, proposal)
    do(session, admit, proposal, do(session, judge, proposal))


def success(name, retrieved=(), revision=1):
    turns = [(*turn, tuple(retrieved)) for turn in SAFE]
    played = attempt(name, turns, success=True)
    return type(played)(**{n: getattr(played, n) for n in played.__slots__} | {"id": f"{revision}/rollout-0/t/{name}"})


@pytest.mark.full
def test_two_iterations_add_vote_and_keep_everything_with_the_revision(tmp_path):
    with opened(tmp_path) as session:
        first = iterate(session, [success("0")])
        assert (first["bank/edits/add"], first["bank/edits/upvote"], first["bank/admitted"]) == (2.0, 0.0, 2.0)
        assert (first["bank/edits/proposed"], first["bank/writer/operations"]) == (2.0, 2.0)
        ids = {entry.strategy: entry.id for entry in session.bank.entries}
    # A new process: pools, scores and references are those of the revision.
    with opened(tmp_path) as session:
        assert [e.id for e in session.references.of(KEY).successes] == ["1/rollout-0/t/0"]
        hits = session.index().search("house lotus . task clean plate to desk", KEY)
        assert {(hit.entry.id, hit.score) for hit in hits} == {(name, 1.0) for name in ids.values()}
        second = iterate(session, [success("1", [ids["lotus mug in safe"]], revision=2)])
        assert (second["bank/edits/add"], second["bank/edits/upvote"], second["bank/size"]) == (0.0, 1.0, 2.0)
        best = session.index().search("anything", KEY)[0]
        assert (best.entry.strategy, best.score) == ("lotus mug in safe", 2.0)
        bank = session.stores.bank
        assert [ruling.line[:6] for ruling in bank.operations()] == ['ADD("l', 'ADD("l', "UPVOTE"]
        assert [ruling.revision for ruling in why(bank, best.entry.id).operations] == [1, 2]


def test_a_rollback_takes_scores_and_operations_back(tmp_path):
    with opened(tmp_path) as session:
        iterate(session, [success("0")])
        before = session.stores.bank.hashes()
        lowest = min(session.bank.entries, key=lambda entry: entry.strategy)
        fire(session, Proposal(edits=(Edit(KEY, f'DOWNVOTE("{lowest.id}")', ("2/rollout-1/t/0",)),)))
        assert session.pending.metrics["bank/edits/removed"] == 1.0
        assert lowest.id not in {entry.id for entry in session.bank.entries}
        session.iteration += 1
        sessions.committed(session)
        assert session.stores.bank.hashes().items() - before.items()
    with opened(tmp_path) as session:
        session.stores.lineage.rollback(1, session.stores.bank)
        assert session.stores.bank.hashes() == before
        assert lowest.id in {entry.id for entry in session.stores.bank.active()}


def test_nothing_that_an_evaluation_taught_is_carried_out(tmp_path):
    with opened(tmp_path) as session:
        edit = Edit(KEY, 'ADD("lotus mug in safe")', ("1/evaluate-seen-houses/t/0",))
        with pytest.raises(GateError, match="gate edits"):
            fire(session, Proposal(edits=(edit,)))
        assert session.bank.entries == []
