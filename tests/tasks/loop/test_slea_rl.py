"""SLEA-RL's bank in the loop: real stores, without servers, and with the expert in place of a policy."""

import pytest
from support import sessions
from support.sessions import batch, do, shaped
from support.worker import expert_worker

from coevo.configs.load.load import load_recipe
from coevo.tasks.steps.bank_steps import admit, gate_candidates, judge, update_statistics, write
from coevo.tasks.steps.evaluate import evaluate

SMALL = ("warmstart=null", "update=null", "iterations=2", "rollout.tasks=8", "rollout.group_size=4", "env.houses=2",
         "evaluation.tasks=8", "bank.retrieval.warmup=1", "bank.retrieval.min_entries=0")  # fmt: skip


def opened(root, *settings):
    return sessions.opened(root, load_recipe("homerules-slea-rl", [*SMALL, *settings]), played=expert_worker())


def iterate(session):
    """One iteration with all that concerns the bank; its episodes, metrics and decision."""
    episodes = shaped(session, batch(session)).episodes
    do(session, update_statistics)
    proposal = do(session, write)
    gate_candidates(session, proposal)
    decision = do(session, judge, proposal)
    do(session, admit, proposal, decision)
    metrics = dict(session.pending.metrics)
    session.iteration += 1
    sessions.committed(session)
    return episodes, metrics, decision


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A session after one iteration, with its episodes, metrics and decision; it is looked at, not continued."""
    with opened(tmp_path_factory.mktemp("first")) as session:
        yield session, *iterate(session)


def test_two_iterations_write_admit_associate_and_show(tmp_path):
    with opened(tmp_path) as session:
        first, metrics, decision = iterate(session)
        assert not any(turn.retrieved for episode in first for turn in episode.turns)
        assert metrics["bank/admitted"] == metrics["bank/size"] == len(decision.entries) > 3
        assert metrics["bank/writer/strategies"] + metrics["bank/writer/warnings"] == len(decision.entries)
        assert metrics["bank/admission/strategies"] + metrics["bank/admission/warnings"] == metrics["bank/size"]
        assert {entry.zone for entry in decision.entries} == {"strategy", "warning"}
        assert {entry.split for entry in session.stores.bank.active()} == {"train"}
        linked = {entry for cluster in session.stores.bank.clusters() for entry in cluster.entries}
        assert linked == {entry.id for entry in decision.entries}
        worth = {entry: stats.utility for entry, stats in session.stores.bank.stats().items()}
        assert {entry.id: worth[entry.id] for entry in decision.entries} == decision.utility
        second, metrics, _ = iterate(session)
        assert metrics["bank/retrieval/enabled"] == 1.0
        assert metrics["bank/retrieval/step_hits"] > 0
        assert {entry for episode in second for turn in episode.turns for entry in turn.retrieved} <= linked


def test_each_entry_belongs_to_the_clusters_where_its_example_was_taken(first):
    session, episodes, _, decision = first
    by_id = {episode.id: episode for episode in episodes}
    for entry in decision.entries:
        turns = [turn for source in entry.sources for turn in by_id[source].turns if turn.action == entry.example]
        assert turns
        for turn in turns:
            assert entry.id in session.bank.clusters.entries(turn.cluster_id)


def test_what_is_retired_vanishes_from_clusters_and_answers_and_stays_in_the_bank(tmp_path):
    with opened(tmp_path, "bank.admission.capacity={strategy: 2, warning: 1}") as session:
        iterate(session)
        for _ in range(3):
            shown = {entry.id for entry in session.bank.entries}
            episodes, metrics, decision = iterate(session)
            assert metrics["bank/admission/strategies"] <= 6
            assert metrics["bank/admission/warnings"] <= 3
            retired = {entry.id for entry in decision.entries if not entry.active}
            assert metrics["bank/retired"] == len(retired)
            active = {entry.id for entry in session.bank.entries}
            assert {entry.id for entry in session.stores.bank.active()} == active
            assert retired <= {entry.id for entry in session.stores.bank.entries()} - active
            assert {each for cluster in session.stores.bank.clusters() for each in cluster.entries} <= active
            for turn in (turn for episode in episodes for turn in episode.turns):
                hits = session.index().search(turn.observation, episodes[0].task.scope)
                assert {hit.entry.id for hit in hits} <= active
                assert set(turn.retrieved) <= shown
            if retired:
                return
    pytest.fail("nothing was ever replaced")


def test_evaluation_changes_neither_bank_nor_clusters(first):
    session, *_ = first
    hashes, changed = session.stores.bank.hashes(), session.bank.clusters.changed()
    evaluate(session)
    assert session.stores.bank.hashes() == hashes
    assert session.bank.clusters.changed() == changed


def test_a_cluster_without_entries_asks_the_library(first):
    session, episodes, metrics, _ = first
    assert metrics["bank/retrieval/clusters"] > 3
    bare = [n for n in range(len(session.bank.clusters)) if not session.bank.clusters.entries(n)]
    assert bare
    seen, task = session.experience(session.here), episodes[0].task
    (turn, *_) = [turn for episode in episodes for turn in episode.turns if turn.cluster_id in bare]
    assert seen.of_step(task, turn.observation) == ()
    assert seen.tally()["fallbacks"] == 1
