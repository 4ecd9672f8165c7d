"""Phases are kept in one small file, which is always whole, and reports reach the other reporter."""

import json
from types import SimpleNamespace

import pytest
from support.listener import Listener
from support.scheduled import wait_for

from coevo.lineage.workspace import RunPaths
from coevo.tasks.publish.live_phases import MAX_PHASES, NAME, LivePhases, read_phases, recording_phases


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
