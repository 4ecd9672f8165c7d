"""Which tasks there are: apart by seed and by what their instructions name."""

import re
from collections import Counter

import pytest

from coevo.envs.babyai import BabyAI
from coevo.envs.babyai.babyai_contents import COLOURS, HELD_OUT, KINDS, ThingName
from coevo.records.draws import key
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

EVERY = tuple(KINDS)
NAMED = re.compile(rf"({'|'.join(COLOURS)}) (key|ball|box|door)")
FORMS = {
    "goto": r"go to (the|a) \w+ (key|ball|box)",
    "pickup": r"pick up (the|a) \w+ (key|ball|box)",
    "open": r"open the (\w+ )?door",
    "pick_up_seq_go_to": r"pick up (the|a) \w+ \w+ , then go to (the|a) \w+ \w+"
    r"|go to (the|a) \w+ \w+ after you pick up (the|a) \w+ \w+",
    "putnext": r"put (the|a) \w+ \w+ next to (the|a) \w+ \w+",
}


def named(task):
    return {ThingName(*pair) for pair in NAMED.findall(task.instruction)}


def test_training_never_names_what_is_held_out_and_the_panel_nothing_else():
    env = BabyAI(EVERY, 4)
    trained, held = env.sample(300, key("split")), env.panel("held-out", 150).tasks
    assert not any(named(task) & HELD_OUT for task in trained)
    assert all(named(task) and named(task) <= HELD_OUT for task in held)
    assert set().union(*map(named, held)) == HELD_OUT
    assert not any(named(task) & HELD_OUT for task in env.panel("new-rooms", 50).tasks)


def test_all_that_is_not_held_out_is_trained_on():
    seen = set().union(*map(named, BabyAI(("pickup", "open"), 0).sample(600, key("all"))))
    assert (
        seen == {ThingName(colour, thing) for colour in COLOURS for thing in ("key", "ball", "box", "door")} - HELD_OUT
    )


def test_no_level_is_in_two_of_training_panels_and_cloning():
    env = BabyAI(EVERY, 0)
    parts = {
        "train": env.sample(60, key("part")),
        "fresh": env.probe(60, key("part")).tasks,
        "panel": [task for name in env.panels for task in env.panel(name, 30).tasks],
    }
    remainders = [{task.data["seed"] % 3 for task in tasks} for tasks in parts.values()]
    assert all(len(remainder) == 1 for remainder in remainders)
    assert len(set.union(*remainders)) == 3


def test_each_kind_asks_in_its_own_words_both_orders_and_doors_without_a_colour_among_them():
    for kind, form in FORMS.items():
        for task in BabyAI((kind,), 3).sample(30, key("forms")):
            assert re.fullmatch(form, task.instruction)
            assert (task.kind, task.scope, task.split) == (kind, kind, "train")
    said = [task.instruction for task in BabyAI(("pick_up_seq_go_to", "open"), 0).sample(60, key("both"))]
    assert any(" after " in text for text in said)
    assert any(", then" in text for text in said)
    assert "open the door" in said


def test_kinds_are_equally_likely_in_training_and_come_in_turn_in_panels():
    env = BabyAI(EVERY, 0)
    kinds = Counter(task.kind for task in env.sample(500, key("kinds")))
    # Four standard deviations of a binomial count of 500 draws with chance 1/5: 36.
    assert all(abs(kinds[kind] - 100) < 36 for kind in EVERY)
    assert [task.kind for task in env.panel("held-out", 10).tasks] == list(EVERY) * 2


def test_a_task_says_how_long_it_may_take():
    limits = {task.kind: task.data["steps"] for task in BabyAI(EVERY, 0).panel("held-out", 5).tasks}
    assert limits == {"goto": 64, "pickup": 64, "open": 128, "pick_up_seq_go_to": 128, "putnext": 128}
    assert BabyAI(steps=20).sample(1, key(0))[0].data["steps"] == 20


@pytest.mark.parametrize("distractors", [0, 3, 8])
def test_there_are_as_many_distractors_as_asked_for(distractors):
    for kind, besides in (("goto", 1), ("pick_up_seq_go_to", 2), ("open", 2)):
        env = BabyAI((kind,), distractors)
        state, _ = env.start(env.sample(1, key("count"))[0])
        cells = [cell for cell in state.simulator._level.grid.grid if cell is not None and cell.type != "wall"]
        assert len(cells) == distractors + besides


def test_a_task_that_does_not_fit_its_level_is_refused():
    (task,) = BabyAI().sample(1, key(0))
    other = Task(task.env, task.kind, "go to the moon", task.scope, task.split, task.data)
    with pytest.raises(CoevoError, match=r"'go to the moon'.*version of minigrid") as caught:
        BabyAI().start(other)
    assert "\n" not in str(caught.value)
