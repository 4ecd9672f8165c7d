"""A bank in memory: decisions and episodes change it in one place, and copies leave it as it was."""

from dataclasses import replace

import pytest
from support.batches import episode, turn
from support.entries import entry

from coevo.configs.bank.bank_config import BankConfig
from coevo.configs.bank.retrieval_config import ClustersConfig
from coevo.memory.admission.admission import Decision
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange, Ruling
from coevo.memory.bank_state import BankState
from coevo.memory.clusters import Cluster, Clusters
from coevo.memory.stats import Stats
from coevo.memory.trials import OnTrial
from coevo.records.entry import Entry

SETTINGS = ClustersConfig(delta=0.85)


def bank(**retrieval):
    return BankConfig.model_validate({"retrieval": {"type": "cluster", **retrieval}, "utility": {"initial": 0.2}})


def seen(*entries: Entry):
    """An episode whose only turn, in cluster 0, showed these entries."""
    shown = replace(turn(), retrieved=tuple(each.id for each in entries), cluster_id=0)
    return replace(episode(turns=(shown,)), success=True)


@pytest.fixture
def state():
    return BankState(bank(), [entry("old"), entry("stays")], {}, Clusters(SETTINGS, [Cluster(0, "at hall")]))


def test_a_decision_changes_entries_counters_and_clusters_and_is_a_change_of_the_bank(state):
    played = seen()
    fresh, gone = replace(entry("new"), sources=(played.id,)), replace(entry("old"), retired=2)
    ruling = Ruling("1", 2, "", "ADD", "applied")
    version = state.version
    state.apply(Decision((fresh, gone), {entry("stays").id: 0.7}, operations=(ruling,)), [played])
    assert [each.strategy for each in state.entries] == ["stays", "new"]
    assert state.version > version
    counters = {name: stats.utility for name, stats in state.stats.items()}
    assert counters == {fresh.id: 0.2, gone.id: 0.2, entry("stays").id: 0.7}
    change = state.change()
    assert change.entries == (fresh, gone)
    assert {stats.id for stats in change.stats} == counters.keys()
    assert change.clusters == (Cluster(0, "at hall", (fresh.id,)),)
    assert change.operations == (ruling,)
    state.settle()
    assert state.change() == BankChange()


def test_episodes_are_credited_and_utilities_follow_only_while_the_bank_learns(state):
    (old, _) = state.entries
    state.update_statistics([seen(old)], utilities=False)
    assert state.stats[old.id] == Stats(old.id, 1, 1)
    state.update_statistics([seen(old)], utilities=True)
    assert state.stats[old.id].retrievals == 2
    assert state.stats[old.id].visits == 2


def test_a_copy_and_a_trial_leave_the_state_as_it_was(state):
    before = (list(state.entries), dict(state.stats), state.clusters.all(), state.version)
    played = seen()
    candidate = replace(entry("new"), sources=(played.id,))
    tried = state.trying([candidate], [played])
    assert [each.strategy for each in tried.entries] == ["old", "stays", "new"]
    assert tried.clusters.entries(0) == (candidate.id,)
    copy = state.copy()
    copy.apply(Decision((candidate,)), [played])
    copy.update_statistics([played], utilities=True)
    assert (list(state.entries), dict(state.stats), state.clusters.all(), state.version) == before
    assert state.change() == BankChange()


def test_candidates_on_trial_come_and_go_and_are_no_entries(state):
    old, stays = state.entries
    assert state.trying([], [], removed=[old]).entries == [stays]
    waiting, ended = OnTrial(entry("waits"), (), 1), OnTrial(entry("ended"), ())
    played = seen(old, waiting.entry)
    candidate = replace(entry("new"), sources=(played.id,))
    state.trials = [ended, waiting]
    state.proceed(Decision(begun=(candidate,), ended=(ended.entry.id,)), [played])
    assert state.library().admission.trials == [waiting, OnTrial(candidate, (played.task,))]
    state.update_statistics([played], utilities=False)
    assert state.stats == {old.id: Stats(old.id, 1, 1)}


@pytest.mark.parametrize("type_", ["bm25", "tfidf"])
def test_clusters_that_retrieval_does_not_read_are_not_linked(type_):
    config = BankConfig.model_validate({"retrieval": {"type": type_}})
    state = BankState(config, [], {}, Clusters(SETTINGS, [Cluster(0, "at hall")]))
    played = seen()
    state.apply(Decision((replace(entry("new"), sources=(played.id,)),)), [played])
    assert state.pools is None
    assert state.clusters.entries(0) == ()
    assert BankState(None, clusters=state.clusters).pools is None


def test_a_stored_bank_that_merges_a_change_has_the_state(tmp_path):
    stored = Bank(tmp_path / "bank")
    stored.merge(BankChange(entries=(entry("old"),), clusters=(Cluster(0, "at hall"),)))
    state = BankState.stored(stored, bank(), SETTINGS)
    played = seen(entry("old"))
    state.update_statistics([played], utilities=True)
    state.apply(Decision((replace(entry("new"), sources=(played.id,)),)), [played])
    stored.merge(state.change())
    again = BankState.stored(stored, bank(), SETTINGS)
    assert sorted(each.id for each in again.entries) == sorted(each.id for each in state.entries)
    assert again.stats == state.stats
    assert again.clusters.all() == state.clusters.all()
