"""Reports of stages: named from start to end, counted by any thread, and by nobody where nobody listens."""

from threading import Thread

import pytest
from prefect import flow
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_LEVEL, temporary_settings
from support.answering import Scripted
from support.listener import Listener
from support.worker import alone, environment, worker

from coevo.configs.bank.writer_model_config import PolicyWriterModelConfig
from coevo.records.draws import extend, key
from coevo.records.writing import Question
from coevo.tasks.play.play import Attempt
from coevo.tasks.publish.reporter import counting, in_stage, reporting_to
from coevo.tasks.stage import stage
from coevo.tasks.writing.artifact import KeptWriting
from coevo.tasks.writing.ask_writer_model import Writing
from coevo.tasks.writing.journal import Journal


@pytest.fixture
def heard():
    listener = Listener()
    with reporting_to(listener):
        yield listener.notes


@stage("inner")
def inner():
    counting("{done} of 2")(done=1)


@stage("outer")
def outer():
    inner()
    counting("{done} of 3")(done=3)


STAGES = ["outer", "inner", "inner: 1 of 2", "outer", "outer: 3 of 3", ""]


def test_a_stage_within_another_is_reported_until_its_end(heard):
    outer()
    assert heard == STAGES


@pytest.mark.full
def test_within_a_flow_as_well(prefect_url, heard):
    @flow(name="stages")
    def run():
        outer()

    with temporary_settings({PREFECT_API_URL: prefect_url, PREFECT_LOGGING_LEVEL: "CRITICAL"}):
        run()
    assert heard == STAGES


def test_a_stage_that_fails_is_over(heard):
    with pytest.raises(KeyError), in_stage("r1 update"):
        raise KeyError
    assert heard == ["r1 update", ""]


def test_threads_count_together(heard):
    with in_stage("r1 rollout"):
        add = counting("{over} over, {turns} turns")
        threads = [Thread(target=add, kwargs={"over": 1, "turns": 2}) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert heard[-2] == "r1 rollout: 8 over, 16 turns"


def test_outside_of_a_stage_nothing_is_counted(heard):
    counting("{over} of 3")(over=1)
    assert heard == []


@pytest.mark.parametrize("playing", [worker, alone])
def test_episodes_and_turns_are_counted_while_they_are_played(heard, playing):
    attempts = [
        Attempt(task, 0, (), "rollout-0", 1, extend(key(3), task.id)) for task in environment().sample(4, key(5))
    ]
    with in_stage("r1 rollout"):
        episodes = playing().play(attempts)
    turns = sum(len(episode.turns) for episode in episodes)
    assert heard[-2] == f"r1 rollout: 4 of 4 episodes are over, {turns} turns played"
    assert len(heard) > 4


def test_answers_of_the_writer_are_counted(heard, tmp_path):
    writing = Writing(
        Scripted(), PolicyWriterModelConfig(), Journal(tmp_path / "journal", 1), KeptWriting(), pytest.fail
    )
    with in_stage("r1 write"):
        writing.ask(1, [Question("contrast", f"t{n}", (f"e{n}",), "system", f"{n}") for n in range(3)])
    assert heard[1:-1] == [f"r1 write: {n} of 3 questions are answered" for n in (1, 2, 3)]
