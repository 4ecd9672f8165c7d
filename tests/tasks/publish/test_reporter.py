"""Reports of stages: named from start to end, counted by any thread, and by nobody where nobody listens."""

import json
import re
from threading import Thread
from types import SimpleNamespace

import pytest
from prefect import flow
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_LEVEL, temporary_settings
from support.answering import Scripted
from support.listener import Listener
from support.scheduled import wait_for
from support.worker import alone, environment, worker

from coevo.configs.bank.writer_model_config import PolicyWriterModelConfig
from coevo.lineage.workspace import RunPaths
from coevo.records.draws import extend, key
from coevo.records.writing import Question
from coevo.tasks.play.play import Attempt
from coevo.tasks.publish.reporter import (
    MAX_PHASES,
    NAME,
    LivePhases,
    counting,
    in_stage,
    read_phases,
    recording_phases,
    reporting_to,
)
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
    told = f"r1 rollout: 4 of 4 episodes are over, 0 wait, {turns} turns played, slowest "
    assert re.fullmatch(rf"{told}\d+\.\d s", heard[-2])
    assert heard[1].startswith("r1 rollout: 0 of 4 episodes are over, 4 wait, 0 turns played, ")
    assert len(heard) > 4


def test_answers_of_the_writer_are_counted(heard, tmp_path):
    writing = Writing(
        Scripted(), PolicyWriterModelConfig(), Journal(tmp_path / "journal", 1), KeptWriting(), pytest.fail
    )
    with in_stage("r1 write"):
        writing.ask(1, [Question("contrast", f"t{n}", (f"e{n}",), "system", f"{n}") for n in range(3)])
    assert heard[1:-1] == [f"r1 write: {n} of 3 questions are answered" for n in (1, 2, 3)]


@pytest.fixture
def paths(tmp_path):
    return RunPaths(tmp_path)


def test_stages_of_a_revision_are_kept_until_it_is_committed(paths):
    listener = Listener()
    with recording_phases(paths, listener) as recorder:
        recorder.note("r3 rollout: 1 of 8 episodes")
        recorder.note("r3 rollout: 8 of 8 episodes")
        recorder.note("r4 rollout")
        recorder.warn("slow")
        wait_for(lambda: (found := read_phases(paths)) is not None and found.warnings == ("slow",))
        found = read_phases(paths)
        assert [phase.text for phase in found.phases] == ["r3 rollout: 8 of 8 episodes", "r4 rollout"]
        assert found.phases[0].began <= found.phases[0].seen
        recorder.revision(SimpleNamespace(revision=3))
        wait_for(lambda: [phase.name for phase in read_phases(paths).phases] == ["r4 rollout"])
        recorder.note("")
        wait_for(lambda: read_phases(paths).current == "")
    assert listener.notes == ["r3 rollout: 1 of 8 episodes", "r3 rollout: 8 of 8 episodes", "r4 rollout", ""]
    assert listener.warnings == ["slow"]


def test_many_notes_are_few_writes_and_bounded(paths, monkeypatch):
    writes = []
    with recording_phases(paths, Listener()) as recorder:
        write = recorder._write
        monkeypatch.setattr(recorder, "_write", lambda: (writes.append(1), write()))
        for number in range(2000):
            recorder.note(f"stage {number}: " + "x" * 1000)
        wait_for(lambda: (found := read_phases(paths)) is not None and found.phases[-1].name == "stage 1999")
    assert len(read_phases(paths).phases) == MAX_PHASES
    assert len(writes) < 200


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"current": 1}', json.dumps({"phases": 3}), "[" * 100_000, "\x00\xff"]
)
def test_a_damaged_file_is_no_record(paths, text):
    (paths.root / NAME).write_text(text, encoding="utf-8")
    assert read_phases(paths) is None


def test_without_a_file_there_is_none(paths):
    assert read_phases(paths) is None
    assert LivePhases().phases == ()
