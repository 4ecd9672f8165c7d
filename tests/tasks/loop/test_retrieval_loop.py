"""Retrieval in the loop: real rollouts, bank and lineage of a frozen, untrained policy, without servers."""

from dataclasses import replace

from support.entries import entry
from support.sessions import batch, committed, do, iterate, opened, shaped
from support.worker import expert_worker, worker

from coevo.configs.load.load import load_recipe
from coevo.memory.clusters import Cluster
from coevo.memory.writers.writer import Proposal
from coevo.tasks.play.play import RolloutWorker
from coevo.tasks.steps.bank_steps import admit, judge, update_statistics
from coevo.tasks.steps.evaluate import evaluate

SMALL = [
    "warmstart=null", "iterations=3", "rollout.tasks=2", "rollout.group_size=4", "rollout.max_turns=2",
    "evaluation.tasks=4", "bank.admission.replays=1",
    "bank.admission.confidence=null",
]  # fmt: skip
CLUSTERS = ("clusters.delta=0.85", "bank.retrieval.type=cluster")


def step(session):
    """One iteration as far as retrieval goes."""
    episodes = shaped(session, batch(session)).episodes
    do(session, update_statistics)
    session.iteration += 1
    metrics = dict(session.pending.metrics)
    session.fire()
    committed(session)
    return episodes, metrics


def configured(*settings):
    return load_recipe("homerules-experience-only", [*SMALL, *settings])


def known(n=2):
    """Entries that concern every task, whatever its house."""
    return [entry(f"task {directory} n{i}", keywords="task hall") for directory in ("safe", "drawer") for i in range(n)]


def test_clusters_grow_with_the_rollouts_and_survive_a_new_session(tmp_path):
    config = configured(*CLUSTERS)
    with opened(tmp_path, config) as session:
        episodes, metrics = step(session)
        (hall,) = {turn.observation for episode in episodes for turn in episode.turns}
        assert {turn.cluster_id for episode in episodes for turn in episode.turns} == {0}
        assert (metrics["bank/retrieval/clusters"], metrics["bank/retrieval/cluster_score"]) == (1.0, 0.0)
        assert session.stores.bank.clusters() == [Cluster(0, hall)]
        before = session.stores.bank.hashes()["clusters"]
    with opened(tmp_path, config) as again:
        assert again.bank.clusters.nearest(hall) == 0
        step(again)
        assert again.stores.bank.hashes()["clusters"] == before


def test_half_a_group_sees_the_bank_and_each_turn_says_what_it_saw(tmp_path):
    config = configured("bank.retrieval.share=0.5", "bank.retrieval.per=both", "bank.retrieval.k=3")
    with opened(tmp_path, config, known()) as session:
        episodes, metrics = step(session)
        assert {e.replica: {len(t.retrieved) for t in e.turns} for e in episodes} == {0: {3}, 1: {3}, 2: {0}, 3: {0}}
        assert metrics["bank/retrieval/conditioned_share"] == 0.5
        assert (metrics["bank/retrieval/task_hits"], metrics["bank/retrieval/step_hits"]) == (3.0, 3.0)
        # The observation finds the very entries that the instruction has found.
        assert metrics["bank/retrieval/step_tokens"] == 0.0
        assert {stats.retrievals for stats in session.stores.bank.stats().values()} == {4}
        # Three of four entries were found for either task's four rollouts with the bank.
        assert (metrics["bank/retrieval/count_max"], metrics["bank/retrieval/never_share"]) == (4.0, 0.25)


def test_step_entries_cost_tokens_of_their_own(tmp_path):
    config = configured("bank.retrieval.per=step", "bank.retrieval.k=1")
    with opened(tmp_path, config, known()) as session:
        episodes, metrics = step(session)
        assert {len(t.retrieved) for e in episodes for t in e.turns} == {1}
        assert metrics["bank/retrieval/step_tokens"] == len([".", "task", "safe", "n0"])
        assert session_rates(session)["bank/retrieval/seconds"] > 0


def session_rates(session):
    return session.stores.lineage.history.head().observed["metrics"]


def test_the_gate_opens_after_the_warm_up_and_for_a_bank_that_is_large_enough(tmp_path):
    config = configured("bank.retrieval.warmup=1", "bank.retrieval.min_entries=3")
    with opened(tmp_path, config, known()) as session:
        assert session.shown_index(0) is None
        for shown in (0.0, 1.0):
            episodes, metrics = step(session)
            assert metrics["bank/retrieval/enabled"] == shown
            assert any(turn.retrieved for episode in episodes for turn in episode.turns) == bool(shown)
        session.bank.entries.pop()
        assert session.shown_index(2) is None


def test_replays_and_evaluations_read_the_clusters_and_admission_links_them(tmp_path):
    config = configured(*CLUSTERS)
    with opened(tmp_path, config, known()) as session:
        episodes = shaped(session, batch(session)).episodes
        source, hashes = episodes[0], session.stores.bank.hashes()
        taught = replace(entry("task nothing", example="go", scope=source.task.scope), sources=(source.id,))
        made = session.bank.clusters.changed()
        proposal = Proposal((taught,))
        decision = do(session, judge, proposal)
        session.pending.measure(evaluate(session))
        assert session.bank.clusters.changed() == made
        assert session.stores.bank.hashes() == hashes
        do(session, admit, proposal, replace(decision, entries=(taught,)))
        session.iteration += 1
        committed(session)
        (cluster,) = session.stores.bank.clusters()
        assert cluster.entries == (taught.id,)
        assert [hit.entry for hit in session.index().search(cluster.prototype, source.task.scope)] == [taught]


class Keeping(RolloutWorker):
    """Keeps what it has played."""

    played: list

    def play(self, attempts):
        self.played.append(super().play(attempts))
        return self.played[-1]


def test_a_replay_finds_candidates_in_clusters_that_a_decision_alone_changes(tmp_path):
    keeping = Keeping(worker().env, worker().context, worker().engine, max_turns=2)
    keeping.played = []
    with opened(tmp_path, configured(*CLUSTERS, "bank.admission.delta=1"), played=keeping) as session:
        source = shaped(session, batch(session)).episodes[0]
        taught = replace(entry("task nothing", scope=source.task.scope), sources=(source.id,))
        proposal, clusters = Proposal((taught,)), session.bank.clusters.all()
        decision = do(session, judge, proposal)
        _, both = keeping.played
        half = len(both) // 2
        told, bare = ({turn.retrieved for each in side for turn in each.turns} for side in (both[:half], both[half:]))
        assert (told, bare) == ({(taught.id,)}, {()})
        assert not decision.entries
        do(session, admit, proposal, decision)
        assert session.bank.clusters.all() == clusters


def test_lessons_that_help_are_admitted_into_clusters_by_replay(tmp_path):
    config = configured(*CLUSTERS, "env.houses=2", "rollout.tasks=4", "bank.admission.replays=4")
    with opened(tmp_path, config, played=expert_worker()) as session:
        metrics = iterate(session)
        assert metrics["bank/replay/difference"] > 0
        assert metrics["bank/admitted"] == metrics["bank/size"] > 0
        linked = {entry for cluster in session.stores.bank.clusters() for entry in cluster.entries}
        assert linked == {entry.id for entry in session.stores.bank.active()}
