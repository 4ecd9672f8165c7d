"""The next batch is played beside the update, is part of the revision, and is taken where it would be played so now."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from prefect import flow
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_LEVEL, temporary_settings
from support.batches import episode, turn
from support.sessions import batch, committed, do, opened, shaped
from support.worker import worker

from coevo.configs.load.load import load_recipe
from coevo.models.trainer.trainer_client import UpdateReport
from coevo.tasks.gates.frame_gate import GateError
from coevo.tasks.iteration.prefetch import FOLDER, check_fresh, read_prefetched
from coevo.tasks.iteration.prefetch import staleness as mean_staleness
from coevo.tasks.play.play import RolloutWorker
from coevo.tasks.revision_artifacts import episodes_of
from coevo.tasks.run.open_run import position
from coevo.tasks.steps.policy_steps import advantage, update
from coevo.utilities.errors import CoevoError

SMALL = (
    "warmstart=null", "iterations=3", "rollout.tasks=2", "rollout.group_size=2", "evaluation.tasks=4",
    "update.loss.importance_cap=2.0",
)  # fmt: skip


def configured(*settings, recipe="homerules-coevo-rl", ahead=1):
    return load_recipe(recipe, [*SMALL, f"rollout.ahead={ahead}", *settings])


CONFIG = configured()


class Still:
    """Trainer and engine whose weights stay as they are; what was asked of them, in order."""

    def __init__(self):
        self.asked = []
        self.policy = worker().engine.policy
        self.longest_prompt = worker().engine.longest_prompt

    def generate(self, requests):
        self.asked.append("generate")
        return worker().engine.generate(requests)

    def load(self, policy):
        self.asked.append("load")
        return {}

    def with_sampling(self, sampling):
        return self

    def forget(self):
        worker().engine.forget()

    def update(self, batch, key, answers=None):
        self.asked.append("update")
        return UpdateReport({})

    def save(self, policy, optimizer):
        policy.mkdir(exist_ok=True)
        (policy / "weights").write_text("still")


def session_at(root, config=CONFIG, still=None):
    still = still or Still()
    mine = RolloutWorker(worker().env, worker().context, still, config.rollout.max_turns)
    return opened(root, config, trainer=still, played=mine)


def step(session):
    """One iteration without its bank; what was learned from, and the state of the revision."""
    episodes = learn(session)
    session.iteration += 1
    return episodes, committed(session).state


def learn(session):
    episodes = batch(session)
    found = shaped(session, episodes)
    do(session, update, found.episodes, do(session, advantage, found, None))
    return episodes


def staleness(state):
    return state["metrics"].get("policy/staleness")


@pytest.mark.full
@pytest.mark.parametrize(
    "settings",
    [
        (),
        (
            "clusters.delta=0.85", "bank.retrieval={type: cluster, threshold: 0.5}", "lineage.every=2", "bank.every=2",
            "iterations=4",
        ),
    ],
)  # fmt: skip
def test_sessions_that_end_after_every_revision_give_the_same_states(tmp_path, settings):
    config = configured(*settings)
    updates, each = config.iterations, config.lineage.every

    def states(root, sessions):
        for _ in range(sessions):
            with session_at(root, config) as session:
                for _ in range(updates // sessions):
                    learn(session)
                    ends = session.due.commit()
                    session.iteration += 1
                    if ends:
                        yield committed(session).state

    straight = list(states(tmp_path / "straight", 1))
    assert straight == list(states(tmp_path / "broken", updates // each))
    assert [staleness(state) for state in straight] == ([0.0, 1.0, 1.0] if each == 1 else [1.0, 1.0])
    assert straight[-1]["artifacts"].keys() >= {FOLDER, "episodes"}


def test_every_batch_but_the_first_is_one_version_old_and_none_is_played_for_nothing(tmp_path):
    still = Still()
    with session_at(tmp_path, still=still) as session:
        steps = [step(session) for _ in range(3)]
        versions = [{turn.version for episode in episodes for turn in episode.turns} for episodes, _ in steps]
        committed = [episodes_of(session.stores.lineage, n, session.stores.paths.scratch) for n in (1, 2, 3)]
        assert read_prefetched(session.stores.lineage.artifacts.path(FOLDER)).episodes == []
    assert versions == [{0}, {0}, {1}]
    assert [staleness(state) for _, state in steps] == [0.0, 1.0, 1.0]
    for number, ((episodes, _), kept) in enumerate(zip(steps, committed, strict=True)):
        assert [episode.id for episode in kept] == [episode.id for episode in episodes]
        assert all(episode.id.startswith(f"{number + 1}/rollout-{number}/") for episode in episodes)
    rounds = " ".join(still.asked).split("load")
    assert ["generate" in each for each in rounds] == [True, True, False, False]


def test_tasks_and_draws_are_those_of_a_run_that_waits(tmp_path):
    played = []
    for ahead in (0, 1):
        with session_at(tmp_path / str(ahead), configured(ahead=ahead)) as session:
            played.append([step(session) for _ in range(3)])
    for (waiting, state), (ahead, _) in zip(*played, strict=True):
        assert staleness(state) is None
        assert FOLDER not in state["artifacts"]
        assert [episode.id for episode in waiting] == [episode.id for episode in ahead]
        # The weights stay, so what is written is the same as well.
        told = [[t.completion.token_ids for e in episodes for t in e.turns] for episodes in (waiting, ahead)]
        assert told[0] == told[1]


def test_what_was_played_for_another_revision_is_played_again(tmp_path):
    with session_at(tmp_path) as session:
        step(session)
        session.pending.revision += 1
        episodes, state = step(session)
        assert staleness(state) == 0.0
        assert {episode.revision for episode in episodes} == {3}


def test_what_was_played_under_other_settings_is_left_behind(tmp_path):
    with session_at(tmp_path, configured("rollout.sampling.temperature=0.5")) as session:
        step(session)
    with session_at(tmp_path) as session:
        assert session.prefetched is not None
        session.accepted, session.prefetched = ["rollout.sampling.temperature was 0.5"], None
        position(session, session.stores.lineage.history.head(), session.stores.paths.staging)
        assert session.prefetched is None


def test_a_run_that_waits_again_keeps_none(tmp_path):
    with session_at(tmp_path) as session:
        step(session)
    with session_at(tmp_path, configured(ahead=0)) as session:
        assert session.prefetched is None
        _, state = step(session)
        assert staleness(state) is None
        assert read_prefetched(session.stores.lineage.artifacts.path(FOLDER)).episodes == []


class Losing(RolloutWorker):
    """Loses every episode."""

    def play(self, attempts):
        return [replace(each, lost="exception: gone") for each in super().play(attempts)]


def overlong(parts):
    return replace(parts, limits=replace(parts.limits, max_new_tokens=1))


def losing(parts):
    mine = parts.worker
    return replace(parts, worker=Losing(mine.env, mine.context, mine.engine, mine.max_turns))


@pytest.mark.parametrize(
    ("spoilt", "error", "line"),
    [
        (overlong, GateError, "nothing was committed"),
        (losing, CoevoError, "^train: the environment lost 4 of 4 episodes"),
    ],
)
def test_a_batch_that_the_next_iteration_would_refuse_is_not_committed(tmp_path, spoilt, error, line):
    with session_at(tmp_path) as session:
        found = shaped(session, batch(session))
        targets = do(session, advantage, found, None)
        session.parts = spoilt(session.parts)
        with pytest.raises(error, match=line):
            update(session, found.episodes, targets)
        assert session.prefetched is None
        assert session.stores.lineage.history.head().revision == 0


def test_lost_episodes_are_not_stale():
    session = SimpleNamespace(config=CONFIG, iteration=3)
    episodes = [episode(0, 0, (turn(version=3),)), replace(episode(0, 1, (turn(version=2),)), lost="exception: gone")]
    assert mean_staleness(session, episodes) == {"policy/staleness": 0.0}


@pytest.mark.parametrize("version", [2, 3])
def test_an_update_learns_from_its_own_policy_and_the_one_before(version):
    check_fresh([episode(0, 0, (turn(version=version),))], 3, 1)


@pytest.mark.parametrize(("version", "iteration"), [(1, 3), (0, 3), (4, 3), (-1, 3), (-1, 0)])
def test_an_update_refuses_what_is_older_or_bears_no_version(version, iteration):
    fresh = episode(0, 0, (turn(version=iteration), turn(version=version)))
    with pytest.raises(CoevoError, match=rf"turn 1 was written by version {version} .*rollout.ahead=1") as refused:
        check_fresh([fresh], iteration, 1)
    assert "\n" not in str(refused.value)


@pytest.mark.full
def test_the_batch_is_played_while_the_trainer_learns_and_before_new_weights(tmp_path, prefect_url):
    playing, learning = threading.Event(), threading.Event()

    class Meeting(Still):
        """Neither ends before the other has begun."""

        def generate(self, requests):
            if threading.current_thread() is not first:
                playing.set()
                assert learning.wait(60)
            return super().generate(requests)

        def update(self, batch, key, answers=None):
            learning.set()
            assert playing.wait(60)
            return super().update(batch, key)

    still = Meeting()

    @flow(name="ahead", persist_result=False)
    def run():
        with session_at(tmp_path, still=still) as session:
            step(session)

    first = threading.current_thread()
    with temporary_settings({PREFECT_API_URL: prefect_url, PREFECT_LOGGING_LEVEL: "CRITICAL"}):
        run()
    assert still.asked[-1] == "load"
    assert still.asked.index("load") > still.asked.index("update")
