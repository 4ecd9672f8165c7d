import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.envs.homerules.house_conventions import Facts
from coevo.envs.homerules.house_world import HOUSES, LEVELS, Goal, read_observation
from coevo.envs.homerules.rules import advance, begin, observe

LOTUS = Facts(1, "lotus", dict.fromkeys(LEVELS[1].objects, "safe"), {"heat": "oven", "cool": "fridge", "clean": "tub"})
LARGE = Facts(2, "lotus", dict.fromkeys(LEVELS[2].objects, "safe"), {**LOTUS.appliance, "look": "lantern"})


def walk(goal, actions, house=LOTUS):
    steps, state = [], begin(goal, house)
    for action in actions:
        steps.append(advance(state, action))
        state = steps[-1].state
    return steps


def test_the_shortest_plan_of_a_heating_task():
    goal = Goal("lotus", "heat", "mug", "counter")
    assert observe(begin(goal, LOTUS)) == "at hall hold nothing . seen nothing"
    steps = walk(goal, ["go safe", "take mug", "use oven", "put counter"])
    assert [step.feedback for step in steps] == ["mug in safe", "hold mug", "heat with oven", "done"]
    assert [step.observation for step in steps] == [
        "at safe hold nothing . seen safe . found safe",
        "at safe hold mug . seen safe",
        "at oven hold mug hot . seen safe",
        "at counter hold nothing . seen safe . found safe",
    ]
    assert [step.progress for step in steps] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert [step.reward for step in steps] == [0, 0, 0, 1]
    ends = [(step.done, step.success, step.truncated) for step in steps]
    assert ends == [(False, False, False)] * 3 + [(True, True, False)]


def test_a_wrong_appliance_loses_the_episode_and_says_which():
    last = walk(Goal("lotus", "heat", "mug", "counter"), ["go safe", "take mug", "use stove"])[-1]
    assert (last.feedback, last.done, last.success, last.truncated) == ("heat not stove", True, False, False)
    assert (last.reward, last.valid, last.progress) == (0, True, pytest.approx(1 / 3))


def test_a_wasted_step_more_than_one_ends_the_episode():
    steps = walk(Goal("lotus", "put", "mug", "counter"), ["go drawer", "go chest", "go safe", "take mug"])
    assert [step.feedback for step in steps] == ["nothing", "nothing", "mug in safe", "hold mug"]
    assert [step.done for step in steps] == [False, False, False, True]
    assert (steps[-1].truncated, steps[-1].success, steps[-1].progress) == (True, False, 0.5)


def test_success_in_the_last_step_is_no_truncation():
    last = walk(Goal("lotus", "put", "mug", "counter"), ["go drawer", "go safe", "take mug", "put counter"])[-1]
    assert (last.success, last.truncated, last.progress) == (True, False, 1.0)


IMPOSSIBLE = {
    (): ("", "dance", "go", "go safe now", "go counter", "fly safe", "take mug", "put counter", "use oven"),
    ("go drawer",): ("take mug",),
    ("go safe",): ("take plate",),
    ("go safe", "take mug"): ("take mug", "use fridge", "put safe"),
    ("go safe", "take mug", "use oven"): ("use oven",),
}
"""Actions that cannot be done after others."""


@pytest.mark.parametrize(("before", "action"), [(before, each) for before in IMPOSSIBLE for each in IMPOSSIBLE[before]])
def test_what_cannot_be_done_costs_a_step_and_nothing_else(before, action):
    goal = Goal("lotus", "heat", "mug", "counter")
    state = walk(goal, before)[-1].state if before else begin(goal, LOTUS)
    step = advance(state, action)
    assert (step.feedback, step.valid, step.reward, step.done) == ("nothing happens", False, 0, False)
    assert step.observation == observe(state)
    assert step.state.steps == state.steps + 1


@pytest.mark.parametrize("before", [["go safe", "take mug"], ["go safe", "take mug", "use oven"]])
def test_an_untreated_object_or_a_wrong_target_is_not_done(before):
    target = "counter" if "use oven" not in before else "desk"
    last = walk(Goal("lotus", "heat", "mug", "counter"), [*before, f"put {target}"])[-1]
    assert (last.feedback, last.valid, last.success) == ("not done", True, False)
    assert last.observation.startswith(f"at {target} hold mug")


def test_two_objects_are_brought_one_after_the_other():
    carry = ["take mug", "put desk"]
    steps = walk(Goal("lotus", "puttwo", "mug", "desk"), ["go safe", *carry, "go safe", *carry], LARGE)
    carried = ["mug in safe", "hold mug"]
    assert [step.feedback for step in steps] == [*carried, "one done", *carried, "done"]
    assert [step.progress for step in steps] == [0, 0.25, 0.5, 0.5, 0.75, 1]
    assert steps[2].observation == "at desk hold nothing . seen safe . found safe"


def test_looking_ends_under_the_right_lamp():
    steps = walk(Goal("lotus", "look", "mug", ""), ["go safe", "take mug", "use lantern"], LARGE)
    assert (steps[-1].feedback, steps[-1].success, steps[-1].progress) == ("look with lantern", True, 1.0)
    assert [step.progress for step in steps] == [0, 0.5, 1]


WORDS = st.sampled_from(LEVELS[2].words())
ACTIONS = st.lists(st.one_of(st.text(max_size=8), st.tuples(WORDS, WORDS).map(" ".join)), max_size=12)
USEFUL = st.lists(st.sampled_from(["go safe", "go attic", "take mug", "use oven", "use tub", "put desk"]), max_size=12)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(tuple(LEVELS[2].limits)), st.one_of(ACTIONS, USEFUL))
def test_any_episode_is_well_formed(family, actions):
    state = begin(Goal(HOUSES[0], family, "mug", "" if family == "look" else "desk"), LARGE)
    progress = 0.0
    for action in actions:
        before = repr(state)
        step = advance(state, action)
        assert repr(state) == before
        assert progress <= step.progress <= 1
        assert step.reward == step.success == (step.progress == 1)
        assert step.done >= step.success
        assert step.truncated <= step.done
        assert step.state.steps == state.steps + 1 <= 10
        assert read_observation(step.observation).text() == step.observation
        state, progress = step.state, step.progress
        if step.done:
            break
