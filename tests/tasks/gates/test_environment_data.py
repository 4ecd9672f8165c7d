"""Gates on panels and demonstrations."""

import pytest
from support.batches import task

from coevo.records.demonstration import Answer, Demonstration, Moment, Note, PastTurn
from coevo.records.task import Panel, Task
from coevo.tasks.gates.environment_data import check_demonstrations, check_panel
from coevo.tasks.gates.frame_gate import GateError


def panel(*tasks):
    return Panel("seen-houses", "1", tasks)


def demonstration(**changes):
    fields = {"instruction": "do x", "observation": "see", "action": "go x"} | changes
    moment = Moment(fields["instruction"], (Note("a lesson"),), (PastTurn("see", "go y", "ok"),), fields["observation"])
    return Demonstration(moment, Answer("because", fields["action"]))


def test_a_panel_holds_distinct_tasks_of_its_own_split(tmp_path):
    check_panel(panel(task(0, "seen-houses"), task(1, "seen-houses")), tmp_path / "quarantine")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("broken", "expectation"),
    [
        (task(0, "seen-houses"), "be_unique"),
        (task(1, "train"), "column='split'"),
        (Task("e", "k", " ", "s", "seen-houses", {}), "column='instruction'"),
    ],
)
def test_a_broken_panel_is_named(broken, expectation, tmp_path):
    with pytest.raises(GateError, match=f"gate panel-seen-houses: .*{expectation}.* of 2 tasks"):
        check_panel(panel(task(0, "seen-houses"), broken), tmp_path)


@pytest.mark.parametrize("column", ["instruction", "observation", "action"])
def test_a_demonstration_has_something_to_imitate(column, tmp_path):
    check_demonstrations([demonstration()], tmp_path)
    with pytest.raises(GateError, match=f"gate demonstrations: .*column='{column}'.*1 of 2 turns"):
        check_demonstrations([demonstration(), demonstration(**{column: ""})], tmp_path)
    assert (tmp_path / "demonstrations-1" / "batch.parquet").is_file()
