"""The episodes that earned most and least, and how general a lesson is, worked out by hand."""

from dataclasses import replace

import pytest
from support.batches import episode, turn

from coevo.memory.evidence.reward_extremes import best, foremost, level, partition, was_ended, worst
from coevo.records.task import Task


def played(reward, won=False, *, number=0, truncated=False):
    return replace(episode(number, 0, (turn(reward=reward),)), success=won, truncated=truncated)


@pytest.mark.parametrize(
    ("rewards", "upper"),
    [
        ([0.0, 3.0, 1.0, 2.0], [3.0, 2.0]),  # median 1.5
        ([0.0, 0.0, 1.0], [1.0]),
        ([3.0, 1.0, 2.0], [3.0]),  # the middle one is not above the median
        ([1.0, 0.0, 1.0], [1.0, 1.0]),  # the median is the highest
        ([-2.0, -1.0], [-1.0]),
        ([0.5, 0.25, 0.25, 0.5], [0.5, 0.5]),
    ],
)
def test_the_upper_episodes_have_more_than_the_median_or_the_most(rewards, upper):
    episodes = [played(reward, reward < 1) for reward in rewards]
    above, below = partition(episodes)
    assert [each.reward for each in above] == upper
    assert below == [each for each in episodes if each not in above]


def test_among_equal_rewards_the_upper_ones_are_successes():
    won, lost = played(1.0, won=True), played(1.0)
    assert partition([lost, won, lost]) == ([won], [lost, lost])
    assert partition([lost]) == ([], [lost])
    assert partition([won]) == ([won], [])
    assert partition([]) == ([], [])


def test_the_best_come_first_and_of_equals_the_successes():
    most, won, lost = played(2.0), played(1.0, won=True), played(1.0)
    assert foremost([lost, won, most], best) == [most, won, lost]


def test_the_worst_come_first_and_of_equals_those_that_the_environment_ended():
    won, cut, ended, least = played(1.0, won=True), played(1.0, truncated=True), played(1.0), played(0.5, won=True)
    assert foremost([won, cut, ended, least], worst) == [least, ended, won, cut]


def test_of_equals_every_task_has_its_first_before_any_has_its_second():
    first, second, third = (replace(played(1.0), replica=replica) for replica in range(3))
    other, more = played(1.0, number=1), played(2.0, number=1)
    assert foremost([first, second, third, other, more], best) == [more, first, other, second, third]


@pytest.mark.parametrize(
    ("won", "truncated", "ended"),
    [(False, False, True), (False, True, False), (True, False, False), (True, True, False)],
)
def test_a_failure_within_the_limit_of_turns_was_ended(won, truncated, ended):
    assert was_ended(played(0.0, won, truncated=truncated)) is ended


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        (["heat 1"], "example"),
        (["heat 1", "heat 1"], "example"),
        (["heat 1", "heat 2"], "pattern"),
        (["heat 1", "heat 2", "heat 3"], "pattern"),
        (["heat 1", "cool 1"], "principle"),
        (["heat 1", "cool 1", "stack 1"], "principle"),
    ],
)
def test_a_lesson_is_as_general_as_the_tasks_that_it_occurred_in(tasks, expected):
    assert level([Task("a", text.split()[0], text, "s", "train", {}) for text in tasks]) == expected
