"""Tasks that entries were written from: by their source episodes, and as text."""

from dataclasses import replace

import pytest
from support.entries import entry

from coevo.memory.source_tasks import SourceTask, by_source, parse, text
from coevo.records.episode import Episode
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

TASK = Task("homerules", "heat", "heat the pan", "lotus", "train", {"n": 1})
TOLD = SourceTask(TASK.id, "heat", "heat the pan", "lotus")


def test_tasks_are_found_by_the_ids_of_episodes():
    assert SourceTask.of(TASK) == TOLD
    sources = Episode.name(3, "rollout-2", TASK, 1), Episode.name(3, "rollout-2.0.4", TASK, 0)
    entries = [replace(entry("a"), sources=("1/r/unknown/0", *sources)), replace(entry("b"), sources=("x",))]
    found = by_source({TASK.id: TOLD}, entries)
    assert found == dict.fromkeys(sorted(sources), TOLD)
    assert list(found) == sorted(sources)
    imported = f"import-0123456789ab/{sources[0]}"
    others = replace(entry("c"), sources=(imported, f"{TASK.id}/0", TASK.id, f"3/{TASK.id}/rollout-2/1"))
    assert by_source({TASK.id: TOLD}, [others]) == {imported: TOLD}


def test_they_survive_their_text():
    other = SourceTask("b", "cool", "größer", "")
    assert parse(text([TOLD, other, TOLD])) == {TOLD.id: TOLD, "b": other}
    assert text([TOLD, other]) == text([other, TOLD])
    assert text([other]) == '[\n{\n"id": "b",\n"instruction": "größer",\n"kind": "cool",\n"scope": ""\n}\n]'


@pytest.mark.parametrize(
    "lines", ["", "{}", '[{"id": "a"}]', '[{"id": "a", "kind": "", "instruction": 1, "scope": ""}]']
)
def test_tasks_of_another_form_are_refused_in_one_line(lines):
    with pytest.raises(CoevoError, match=r"source tasks cannot be read: .*roll back to another$"):
        parse(lines)
