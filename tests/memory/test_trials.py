"""Candidates on trial: their tasks, their turns, and which files hold them."""

from dataclasses import replace
from math import inf, nan

import pytest
from support.batches import entry, episode, task

from coevo.memory.trials import OnTrial, Pair, begun, parse, revisited, text
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

TRIAL = OnTrial(entry(), (task(1), task(2), task(3)), 2, 1, (1.0,), (0.0,))


def test_a_trial_begins_with_the_first_eight_tasks_of_its_sources():
    played = [episode(number, replica) for number in range(10) for replica in range(2)]
    candidate = entry(sources=("1/rollout/elsewhere/0", *(each.id for each in played)))
    stray = entry("stray", sources=("1/rollout/elsewhere/0",))
    assert begun([candidate, stray], played[::-1]) == [
        OnTrial(candidate, tuple(map(task, range(8))), 0, 0, (), ()),
        OnTrial(stray, (), 0, 0, (), ()),
    ]


def test_its_tasks_take_turns_from_the_one_whose_turn_it_is():
    """The first of three was tried by one group; a candidate without a task is never played."""
    stray = OnTrial(entry("stray"), ())
    chosen = revisited([stray, TRIAL], 9)
    assert [played.data["n"] for _, played in chosen.values()] == [2, 3, 1]
    assert {who.entry.id for who, _ in chosen.values()} == {TRIAL.entry.id}
    most = replace(TRIAL, tasks=tuple(map(task, range(8))))
    assert [len(revisited([most], count)) for count in (0, 1, 8, 9)] == [0, 1, 8, 8]


def test_equal_trials_have_equal_text():
    data = {"a": 1, "b": [2]}
    one, other = (
        replace(TRIAL, tasks=(Task("e", "k", "größer", "s", "train", dict(pairs)),))
        for pairs in (data.items(), reversed(data.items()))
    )
    assert text([one]) == text([other])
    assert "größer" in text([one])
    assert text([one]).startswith('[\n {\n  "entry": {\n   "condition": ')
    assert parse(text([one])) == [one]


def test_who_saw_the_candidate_is_counted():
    after = TRIAL.after([[Pair(1.0, 0.0, False), Pair(0.0, 0.0, True)], [Pair(1.0, 1.0, False)]])
    assert (after.rewards_with, after.rewards_without) == ((1.0, 1.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0))
    assert (after.unseen, after.seen_share) == (2, 0.5)
    assert parse(text([after])) == [after]
    assert OnTrial(entry(), ()).seen_share == 0.0


@pytest.mark.parametrize("reward", [nan, inf])
def test_a_reward_that_is_no_number_is_not_written(reward):
    with pytest.raises(ValueError, match="JSON"):
        text([replace(TRIAL, rewards_with=(reward,))])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tasks": (task(1), task(2, "seen-houses"))}, "task of an evaluation"),
        ({"tasks": (task(1, "validation"),)}, "task of an evaluation"),
        ({"rewards_with": ()}, "no pairs of numbers"),
        ({"rewards_without": ()}, "no pairs of numbers"),
        ({"unseen": 2}, "unseen in 2 of 1 episodes"),
        ({"unseen": -1}, "unseen in -1 of 1 episodes"),
    ],
)
def test_a_candidate_that_could_not_be_on_trial_is_named_by_its_place(changes, says):
    with pytest.raises(CoevoError, match=rf"trials: candidate 1 .*{says}"):
        parse(text([TRIAL, replace(TRIAL, **changes)]))
