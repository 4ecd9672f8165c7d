"""Baselines of rewards are part of the revision: resumed and rolled back with it."""

from dataclasses import replace

import pytest
from support.batches import episode
from support.sessions import committed, opened

from coevo.configs.load.load import load_recipe
from coevo.tasks.resumed_artifacts import RESUMED
from coevo.tasks.revision_artifacts import BASELINES, REFERENCES, read_baselines, write_baselines
from coevo.tasks.steps.policy_steps import shape

GUIDED = load_recipe(
    "homerules-coevo-rl",
    ["warmstart=null", "evaluation.tasks=4", "update.reward={type: progress-guided}", "update.invalid_penalty=0.05"],
)


def test_a_run_that_has_none_starts_without(tmp_path):
    for _ in range(2):
        with opened(tmp_path, GUIDED) as session:
            assert session.baselines == {}


def test_they_are_resumed_and_rolled_back_with_their_revision(tmp_path):
    group = [replace(episode(replica=replica), success=bool(replica)) for replica in range(2)]
    name = group[0].task.id
    for achieved in (group, [replace(one, success=True) for one in group]):
        with opened(tmp_path, GUIDED) as session:
            shape(session, achieved)
            committed(session)
    with opened(tmp_path, GUIDED) as session:
        assert session.baselines == {name: 1.0}
        session.stores.lineage.rollback(1, session.stores.bank)
    with opened(tmp_path, GUIDED) as session:
        assert session.baselines == {name: 0.5}


def test_shaping_and_its_metrics(tmp_path):
    with opened(tmp_path, GUIDED) as session:
        found = shape(session, [episode(replica=1)])
    (shaped,), rewards = found.value.episodes, found.value.rewards
    assert shaped.shaping == rewards.shaping[0]
    assert found.metrics == {"policy/reward/progress_guided": shaped.shaped, **rewards.metrics}


def test_a_frozen_policy_is_not_penalised(tmp_path):
    with opened(
        tmp_path, load_recipe("homerules-experience-only", ["warmstart=null", "evaluation.tasks=4"])
    ) as session:
        (kept,) = shape(session, [episode(replica=1)]).value.episodes
        assert kept.shaped == kept.reward
        assert BASELINES not in committed(session).artifacts


@pytest.mark.parametrize("artifact", [each for each in RESUMED if each.restore], ids=lambda artifact: artifact.name)
def test_a_revision_without_an_artifact_leaves_a_session_as_it_begins(artifact, tmp_path):
    with opened(tmp_path, GUIDED) as session:
        before = {
            name: value for name, value in vars(session).items() if name in ("baselines", "source_tasks", "prefetched")
        }
        artifact.restore(session, None, session.stores.lineage.history.head())
        assert {name: getattr(session, name) for name in before} == before
        assert (session.bank.trials, dict(session.bank.retirement_counters)) == ([], {})
        assert not list(session.references.episodes())


def test_references_are_written_by_the_revision_in_which_the_writer_fired(tmp_path):
    (references,) = (each for each in RESUMED if each.name == REFERENCES)
    config = load_recipe("homerules-coevo-rl", ["warmstart=null", "evaluation.tasks=4", "bank.references=2"])
    with opened(tmp_path, config) as session:
        assert not references.is_due(session, True)
        session.references.add([episode(replica=1)])
        session.pending.revision, session.fired = 3, 2
        assert not references.is_due(session, True)
        session.waiting = True
        assert references.is_due(session, False)
        session.waiting, session.fired = False, 3
        assert references.is_due(session, False)


def test_the_same_baselines_are_the_same_bytes(tmp_path):
    for folder, baselines in (("a", {"x": 0.1, "y": 1 / 3}), ("b", {"y": 1 / 3, "x": 0.1})):
        write_baselines(baselines, tmp_path / folder)
    files = [tmp_path / folder / BASELINES / "baselines.json" for folder in ("a", "b")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert read_baselines(files[0].parent) == {"x": 0.1, "y": 1 / 3}
