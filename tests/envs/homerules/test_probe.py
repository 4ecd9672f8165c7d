import pytest

from coevo.envs.homerules import HomeRules
from coevo.envs.homerules.house_tasks import facts_of, goal_of
from coevo.records.draws import key


@pytest.mark.parametrize("level", [1, 2])
def test_right_lessons_are_true_and_wrong_ones_false_throughout(level):
    probe = HomeRules(level).probe(192, key("probe"))
    assert len({task.id for task in probe.tasks}) == len(probe.right) == len(probe.wrong) == 192
    for task, right, wrong in zip(probe.tasks, probe.right, probe.wrong, strict=True):
        house = facts_of(task)
        truth = {house.lesson(subject) for subject in house.subjects}
        assert set(right) <= truth
        assert not set(wrong) & truth
        assert len(right) == len(wrong) == len(goal_of(task).subjects)
        assert [lesson.split()[:3] for lesson in right] == [lesson.split()[:3] for lesson in wrong]
        assert {lesson.split()[1] for lesson in right} >= set(goal_of(task).subjects)


def test_a_probe_is_one_world_that_nothing_else_plays_in():
    env = HomeRules()
    probe, other = env.probe(32, key("probe")), env.probe(32, key("another"))
    (world,) = {task.data["world"] for task in probe.tasks}
    used = [*env.sample(50, key(0)), *other.tasks, *(task for name in env.panels for task in env.panel(name, 50).tasks)]
    assert world not in {task.data["world"] for task in used}
    assert probe == env.probe(32, key("probe"))
    assert {task.split for task in probe.tasks} == {"probe"}


def test_a_reader_passes_the_probe_and_obeys_the_wrong_lessons(play):
    env = HomeRules()
    probe = env.probe(192, key("reader"))
    right, wrong = (
        sum(play(env, task, lessons, key(task.id))[-1].success for task, lessons in zip(probe.tasks, told, strict=True))
        for told in (probe.right, probe.wrong)
    )
    assert right == 192
    assert wrong < 0.2 * 192


def test_extra_lessons_are_those_of_the_usual_probe_and_others():
    usual, more = (HomeRules(extra_lessons=extra).probe(32, key("probe")) for extra in (0, 5))
    assert usual.tasks == more.tasks
    for before, after in zip((*usual.right, *usual.wrong), (*more.right, *more.wrong), strict=True):
        assert set(before) <= set(after)
        assert len(after) == len(set(after)) == len(before) + 5
