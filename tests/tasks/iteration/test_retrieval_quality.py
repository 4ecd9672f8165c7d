"""Quality of a run's retrieval on real stores: as measured by hand, equal after a resume, absent where it is off."""

import pytest
from support.sessions import do, iterate, opened
from support.worker import expert_worker

from coevo.configs.load.load import load_recipe
from coevo.memory.library import Library
from coevo.memory.retrieval.quality import Quality, measure, queries_of
from coevo.memory.retrieval.scorer import scorer_of
from coevo.records.intervals import Interval
from coevo.records.task import key_by
from coevo.tasks.iteration.retrieval_quality import named, retrieval_quality, sources
from coevo.tasks.revision_artifacts import SOURCE_TASKS, episodes_of, read_source_tasks
from coevo.tasks.steps.bank_steps import write

SETTINGS = [
    "warmstart=null", "env.houses=2", "rollout.tasks=8", "rollout.group_size=2", "evaluation.tasks=4",
    "evaluation.every=1", "evaluation.final_panels=[]", "bank.admission={type: append}", "bank.retrieval.scoped=false",
    "evaluation.retrieval=true",
]  # fmt: skip
MEASURES = {"queries", "hit1", "hit3", "mrr", "precision"}


def configured(*settings):
    return load_recipe("homerules-experience-only", [*SETTINGS, *settings])


def test_metrics_are_those_of_the_bank_and_its_training_episodes(tmp_path):
    with opened(tmp_path, configured(), played=expert_worker()) as session:
        for _ in range(3):
            found = iterate(session)
        lineage, bank, config = session.stores.lineage, session.bank, session.config
        played = [e for revision in (1, 2, 3) for e in episodes_of(lineage, revision, tmp_path / "scratch")]
        library, tasks = Library(bank.entries), {e.id: e.task for e in played}
        queries, score = queries_of(library, tasks, None), scorer_of(config.bank.retrieval).fit(library)
        theirs = measure(score, queries, None, config.bank.retrieval.k, config.seed)
        assert named(theirs, None).items() <= found.items()
        assert found["bank/retrieval/hit1"] == theirs.hit_at_1.mean
        assert found["bank/retrieval/pool_5/precision"] == measure(score, queries, 5, 4, config.seed).precision.mean
        assert theirs.queries > 5
        before = (dict(bank.stats), list(bank.entries), bank.version, dict(session.index().tally))
        assert retrieval_quality(session) == retrieval_quality(session)
        assert (dict(bank.stats), list(bank.entries), bank.version, dict(session.index().tally)) == before


def test_a_scoped_run_searches_the_pool_of_its_task(tmp_path):
    with opened(tmp_path, configured("bank.retrieval.scoped=true"), played=expert_worker()) as session:
        for _ in range(2):
            found = iterate(session)
        queries = queries_of(session.index().library, sources(session), key_by("scope"))
        assert {len(query.rows) for query in queries} < set(range(len(session.bank.entries)))
        assert found["bank/retrieval/queries"] == len(queries)


@pytest.mark.parametrize(
    ("every", "admission"), [(2, "{type: append}"), (1, "{type: within-group, iterations: 1, confidence: null}")]
)
def test_a_resumed_run_knows_the_tasks_of_its_entries(tmp_path, every, admission):
    config = configured(f"bank.every={every}", "rollout.group_size=4", f"bank.admission={admission}")

    def states(root, sittings):
        for count in sittings:
            with opened(root, config, played=expert_worker()) as session:
                for _ in range(count):
                    iterate(session)
                log = session.stores.lineage.history.log()
        return [(each.state["metrics"], each.artifacts["source_tasks"]) for each in log]

    whole = states(tmp_path / "whole", [4])
    assert whole == states(tmp_path / "parts", [1, 2, 1])
    assert {name for metrics, _ in whole for name in metrics} >= {f"bank/retrieval/{name}" for name in MEASURES}


def test_an_uninterrupted_run_knows_what_a_resumed_one_does_references_included(tmp_path):
    refusing = configured("bank.admission={type: replay, delta: 1.0, replays: 1}", "bank.references=4")
    with opened(tmp_path, refusing, played=expert_worker()) as session:
        iterate(session)
        assert (
            read_source_tasks(session.stores.lineage.artifacts.path(SOURCE_TASKS)) == session.source_tasks == {}
        )  # no entry has a source
        session.recent = []
        do(session, write)
        assert session.source_tasks.keys() == {episode.task.id for episode in session.references.episodes()}
        assert session.source_tasks


def test_where_it_is_off_nothing_is_measured_or_kept(tmp_path):
    with opened(tmp_path, configured("evaluation.retrieval=false"), played=expert_worker()) as session:
        found = iterate(session)
        assert session.source_tasks == {}
        assert "source_tasks" not in session.stores.lineage.history.head().artifacts
    assert not [name for name in found if name.endswith(("hit1", "hit3", "mrr", "precision"))]


def test_an_empty_bank_has_no_query(tmp_path):
    with opened(tmp_path, configured(), played=expert_worker()) as session:
        assert retrieval_quality(session) == {}


def test_names_of_metrics():
    one, third, rank, share = (Interval(value, 0.0, 1.0) for value in (0.5, 0.75, 0.6, 0.25))
    assert named(Quality(8, one, third, rank, share), 20) == {
        "bank/retrieval/pool_20/queries": 8.0,
        "bank/retrieval/pool_20/hit1": 0.5,
        "bank/retrieval/pool_20/hit3": 0.75,
        "bank/retrieval/pool_20/mrr": 0.6,
        "bank/retrieval/pool_20/precision": 0.25,
    }
