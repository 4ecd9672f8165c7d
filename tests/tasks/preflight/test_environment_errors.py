"""A failing environment ends a dry run in one line that names the method."""

import pytest

from coevo.configs.load.load import load_recipe
from coevo.envs.base import Guide
from coevo.envs.homerules import HomeRules
from coevo.tasks.preflight.notices import notices
from coevo.tasks.preflight.rehearse import glance, rehearse
from coevo.utilities.errors import CoevoError

CHAT = ("policy={type: pretrained, path: org/none}", "warmstart=null", "context.style=chat")


class Faulty(HomeRules):
    """The household, one of whose methods fails or returns something else."""

    def __init__(self, method, answer):
        super().__init__()
        self.method, self.answer = method, answer

    def _maybe(self, method, value):
        if self.method != method:
            return value
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def sample(self, count, key):
        return self._maybe("sample", super().sample(count, key))

    def guide(self, task):
        return self._maybe("guide", super().guide(task))

    def panel(self, name, size):
        return self._maybe("panel", super().panel(name, size))

    def demonstrations(self, episodes, drills, key):
        return self._maybe("demonstrations", super().demonstrations(episodes, drills, key))


class Few(HomeRules):
    """The household with so many training tasks."""

    def __init__(self, count):
        super().__init__()
        self.count = count

    def sample(self, count, key):
        return super().sample(min(count, self.count), key)


def small(*overrides):
    return load_recipe("homerules-coevo-rl", ["evaluation.tasks=2", *overrides])


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
@pytest.mark.parametrize("method", ["sample", "guide", "panel", "demonstrations"])
def test_an_exception_is_one_line(method, kind):
    env = Faulty(method, kind("no\nserver"))
    with pytest.raises(
        CoevoError, match=rf"homerules\.{method} fails.*{kind.__name__}: no server.*`coevo envs check`"
    ) as error:
        rehearse(small(), env)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("answer", "said"), [(None, "returns None"), ([], r"returns \[\]"), ([1] * 16, "returns .1, 1")]
)
def test_anything_but_tasks_is_named(answer, said):
    with pytest.raises(CoevoError, match=rf"homerules\.sample {said}.*: return 16 tasks"):
        glance(small(), Faulty("sample", answer))


def test_too_few_tasks_are_counted():
    few = Few(5)
    for measured in (glance, rehearse):
        with pytest.raises(CoevoError) as error:
            measured(small("rollout.tasks=6"), few)
        assert str(error.value) == (
            "homerules.sample returned 5 of 6 tasks: set rollout.tasks=5 or fewer, or return more"
        )
    assert glance(small("rollout.tasks=5"), few).tasks == 5 + 4 * 2
    assert len({turn.instruction for turn in rehearse(small("rollout.tasks=5"), few).turns}) <= 5
    assert glance(small("rollout.tasks=1"), Few(1)).tasks == 1 + 4 * 2


@pytest.mark.parametrize(
    ("method", "answer"), [("guide", ValueError("x")), ("guide", Guide(text=7)), ("sample", OSError("x"))]
)
def test_notices_name_a_failing_method(method, answer):
    with pytest.raises(CoevoError, match=rf"homerules\.{method} fails"):
        notices(small(*CHAT), Faulty(method, answer))


def test_an_error_of_coevo_stays_as_it_is():
    with pytest.raises(CoevoError, match=r"^set the port$"):
        rehearse(small(), Faulty("sample", CoevoError("set the port")))
