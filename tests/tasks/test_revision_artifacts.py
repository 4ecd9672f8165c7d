"""Baselines of rewards are part of the revision: resumed and rolled back with it."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.batches import episode

from coevo.configs.update.update_config import UpdateConfig
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.tasks.draft import PendingRevision
from coevo.tasks.revision_artifacts import BASELINES, read_baselines, write_baselines
from coevo.tasks.run.open_run import position
from coevo.tasks.steps.advantage import shape


@pytest.fixture
def session(built, tmp_path):
    """A run and what shaping and positioning touch of its session."""
    place = Workspace(shutil.copytree(built, tmp_path / "copy"))
    paths = place.existing("first")
    settings = UpdateConfig.model_validate({"reward": {"type": "progress-guided"}, "invalid_penalty": 0.05})
    with Lineage.open(paths.lineage, place.cache) as lineage:
        yield SimpleNamespace(
            config=SimpleNamespace(update=settings, bank=None),
            stores=SimpleNamespace(paths=paths, lineage=lineage, bank=Bank(paths.bank)),
            draft=PendingRevision(revision=4),
            bank=SimpleNamespace(trials=[]),
            baselines={},
            due=SimpleNamespace(bank=lambda: False),
        )


def commit(session):
    """The next revision, with whatever was staged."""
    lineage, staging = session.stores.lineage, session.stores.paths.staging
    head = lineage.head()
    state = {name: head.state[name] for name in head.state if name not in ("revision", "parent", "artifacts")}
    observed = {"tables": head.observed["tables"]}
    return lineage.commit({path.name: path for path in staging.iterdir()}, state, observed)


def resumed(session):
    """The baselines that a new session would start from."""
    session.baselines = {"left": 1.0}
    session.stores.paths.clear_staging()
    position(session, session.stores.lineage.head(), session.stores.paths.root)
    return session.baselines


def test_a_run_that_has_none_starts_without(session):
    assert resumed(session) == {}


def test_they_are_resumed_and_rolled_back_with_their_revision(session):
    group = [replace(episode(replica=replica), success=bool(replica)) for replica in range(2)]
    name = group[0].task.id
    for achieved in (group, [replace(one, success=True) for one in group]):
        shape(session, achieved)
        commit(session)
    assert resumed(session) == {name: 1.0}
    before = session.stores.lineage.head().revision - 1
    session.stores.lineage.rollback(before, session.stores.bank)
    assert resumed(session) == {name: 0.5}


def test_shaping_and_its_metrics(session):
    found = shape(session, [episode(replica=1)])
    (shaped,), rewards = found.value.episodes, found.value.rewards
    assert shaped.shaping == rewards.shaping[0]
    assert found.metrics == {"policy/reward/progress_guided": shaped.shaped, **rewards.metrics}


def test_a_frozen_policy_is_not_penalised(session):
    session.config.update = None
    (kept,) = shape(session, [episode(replica=1)]).value.episodes
    assert kept.shaped == kept.reward
    assert not (session.stores.paths.staging / BASELINES).exists()


def test_the_same_baselines_are_the_same_bytes(tmp_path):
    for folder, baselines in (("a", {"x": 0.1, "y": 1 / 3}), ("b", {"y": 1 / 3, "x": 0.1})):
        write_baselines(baselines, tmp_path / folder)
    files = [tmp_path / folder / BASELINES / "baselines.json" for folder in ("a", "b")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert read_baselines(files[0].parent) == {"x": 0.1, "y": 1 / 3}
