"""Unfinished episodes belong to the revision: a new session continues where the last one was, and only there."""

from dataclasses import replace

import pytest
from support.sessions import batch, committed, opened, shaped
from support.worker import environment, worker

from coevo.configs.load.load import load_recipe
from coevo.records.arrow import episodes_to_table
from coevo.tasks.play.play import RolloutWorker
from coevo.tasks.play.vectorised_environments import FOLDER, read_unfinished, replayed
from coevo.tasks.revision_artifacts import episodes_of
from coevo.tasks.steps.policy_steps import gate_episodes
from coevo.utilities.errors import CoevoError

SMALL = ["warmstart=null", "rollout.tasks=3", "rollout.turns=2", "evaluation.tasks=4"]
CONFIG = load_recipe("homerules-context-lite", SMALL)


def step(session):
    """One iteration as far as rollouts go; what was played, and the state of the revision."""
    played = batch(session)
    gate_episodes(session, played)
    parts = shaped(session, played).episodes
    session.iteration += 1
    return parts, committed(session).state


def steps(root, count, config=CONFIG):
    """So many iterations in one session."""
    with opened(root, config) as session:
        return [step(session) for _ in range(count)]


def unfinished(root):
    with opened(root, CONFIG) as session:
        return read_unfinished(session.stores.lineage.artifacts.path(FOLDER))


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A run after one iteration, which nothing continues."""
    root = tmp_path_factory.mktemp("begun")
    steps(root, 1)
    return root


def finished(root):
    """Ids of all whole episodes that were committed, oldest first."""
    with opened(root, CONFIG) as session:
        lineage, scratch = session.stores.lineage, session.stores.paths.scratch
        revisions = range(lineage.history.head().revision + 1)
        return [episode for number in revisions for episode in episodes_of(lineage, number, scratch)]


def test_sessions_that_end_after_every_revision_give_the_same_states(tmp_path):
    straight = steps(tmp_path / "straight", 3)
    broken = [steps(tmp_path / "broken", 1)[0] for _ in range(3)]
    assert [state for _, state in straight] == [state for _, state in broken]
    assert straight[-1][1]["artifacts"].keys() >= {FOLDER, "episodes"}
    tables = [[episodes_to_table(parts) for parts, _ in each] for each in (straight, broken)]
    assert all(one.equals(other) for one, other in zip(*tables, strict=True))
    assert any(part.start for parts, _ in broken for part in parts)


def test_an_episode_is_kept_once_when_it_is_over_and_counts_once(tmp_path):
    played = steps(tmp_path, 4)
    kept = finished(tmp_path)
    parts = [part for each, _ in played for part in each]
    ended = [part for part in parts if not part.following]
    assert [episode.id for episode in kept] == [part.id for part in ended]
    assert len({episode.id for episode in kept}) == len(kept)
    for episode in kept:
        own = [part for part in parts if part.id == episode.id]
        joined = replace(own[-1], turns=tuple(turn for part in own for turn in part.turns), start=0)
        joined = joined.with_shaping(sum(part.shaping for part in own))
        assert episodes_to_table([episode]).equals(episodes_to_table([joined]))
    metrics = [state["metrics"] for _, state in played]
    assert sum(each["agent/episodes/ended"] for each in metrics) == len(kept)
    assert [each["agent/episodes/ended"] + each["agent/episodes/unfinished"] for each in metrics] == [
        len(each) for each, _ in played
    ]
    turns = sum(
        each["agent/turns/train"] * each["agent/episodes/ended"] for each in metrics if "agent/turns/train" in each
    )
    assert turns == sum(len(episode.turns) for episode in kept)


def test_an_update_in_which_nothing_ends_has_no_outcome(tmp_path):
    ((parts, state),) = steps(tmp_path, 1, load_recipe("homerules-context-lite", [*SMALL, "rollout.turns=1"]))
    assert all(part.following for part in parts)
    assert "agent/success/train" not in state["metrics"]
    assert state["metrics"]["agent/episodes/ended"] == 0.0


def test_several_iterations_of_one_revision_go_on_from_each_other(tmp_path):
    config = load_recipe("homerules-context-lite", [*SMALL, "lineage.every=2"])
    with opened(tmp_path, config) as session:
        for _ in range(3):
            shaped(session, batch(session))
            session.iteration += 1
        committed(session)
    assert len({it.episode.id for it in unfinished(tmp_path)} | {e.id for e in finished(tmp_path)}) >= 3


@pytest.mark.full
def test_a_rollback_brings_back_what_was_unfinished_as_episodes_of_its_own(tmp_path):
    steps(tmp_path, 2)
    before = unfinished(tmp_path)
    steps(tmp_path, 3)
    with opened(tmp_path, CONFIG) as session:
        session.stores.lineage.rollback(2, session.stores.bank)
    again = unfinished(tmp_path)
    assert again == before
    played = steps(tmp_path, 4)
    renamed = {f"{it.episode.revision}/{it.stage}+6/{it.episode.task.id}/0" for it in before}
    assert renamed <= {part.id for parts, _ in played for part in parts if part.start}
    kept = [episode.id for episode in finished(tmp_path)]
    # The rolled-back revision holds the episodes of the one it repeats.
    assert len(set(kept)) == len(kept) - len(finished_of(tmp_path, 2))


def finished_of(root, revision):
    with opened(root, CONFIG) as session:
        return episodes_of(session.stores.lineage, revision, session.stores.paths.scratch)


def test_whole_episodes_leave_unfinished_ones_behind(tmp_path):
    steps(tmp_path, 1)
    assert unfinished(tmp_path)
    whole = load_recipe("homerules-context-lite", [*SMALL, "rollout.turns=null"])
    ((played, _),) = steps(tmp_path, 1, whole)
    assert not any(episode.start or episode.following for episode in played)
    assert unfinished(tmp_path) == []


class Forgetful(type(environment())):
    """Another world behind the same name."""

    def start(self, task):
        state, observation = super().start(task)
        return state, observation.replace("hall", "attic")


class Generous(type(environment())):
    """Pays for every action."""

    def step(self, states, actions):
        return [replace(step, reward=0.5) for step in super().step(states, actions)]


class Impatient(type(environment())):
    """Is over after a turn."""

    def step(self, states, actions):
        return [replace(step, done=True) for step in super().step(states, actions)]


@pytest.mark.parametrize(
    ("kind", "what"),
    [(Forgetful, "turn 0 has observation"), (Generous, "turn 0 has reward 0.5"), (Impatient, "done True")],
)
def test_an_environment_that_answers_otherwise_is_refused_in_one_line_that_names_the_episode(begun, kind, what):
    other = RolloutWorker(kind(), worker().context, worker().engine, 50)
    with pytest.raises(CoevoError) as refused, opened(begun, CONFIG, played=other):
        pass
    assert what in str(refused.value)
    assert f"unfinished episode {unfinished(begun)[0].episode.id}:" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_last_observation_is_compared_as_well(begun):
    it = unfinished(begun)[0]
    live = replayed(environment(), it)
    assert (live.observation, live.returned) == (it.observation, len(it.episode.turns))
    with pytest.raises(CoevoError, match=f"turn {len(it.episode.turns)} has observation"):
        replayed(environment(), replace(it, observation="elsewhere"))
