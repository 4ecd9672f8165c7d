"""AppWorld's protocol against a small world that answers its calls, in a child of an interpreter of its own."""

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from support.adapted import anything, one
from support.app_data import app_data, interpreter

from coevo.configs.benchmark_config import AppWorldConfig
from coevo.configs.simulator_config import SimulatorConfig
from coevo.envs.appworld.app_episodes import WorldChild
from coevo.envs.failures import EpisodeFailure
from coevo.envs.registry import make
from coevo.models.answers.read import Reader
from coevo.records.answer_form import FenceForm
from coevo.records.demonstration import Moment
from coevo.records.draws import generator, key
from coevo.tasks.checks.environment_check import check_environment
from coevo.utilities.errors import CoevoError

REAL = os.environ.get("APPWORLD_PYTHON", "")
real = pytest.mark.skipif(not REAL, reason="APPWORLD_PYTHON names no interpreter with AppWorld")


@pytest.fixture
def opened(tmp_path):
    app_data(tmp_path / "root")
    python = interpreter(tmp_path)

    def open_it(**settings):
        return closing(make(AppWorldConfig(path=str(tmp_path / "root"), python=python, **settings)))

    return open_it


def begun(env, index=0):
    return env.start(env.sample(6, key("a"))[index])


def test_code_runs_in_a_session_and_the_completed_task_is_evaluated(opened):
    with opened() as env:
        task = env.sample(6, key("a"))[0]
        state, observation = env.start(task)
        to = task.instruction.split()[-1][:-1]
        assert observation.splitlines()[0] == task.instruction
        assert "email mo@li.test" in observation
        said = one(env, state, f"to = {to!r}\nprint('hello', to)")
        assert (said.observation, said.done, said.valid) == (f"hello {to}\n", False, True)
        sent = one(env, said.state, "print(apis.mail.send(to))")
        won = one(env, sent.state, "apis.supervisor.complete_task()")
        assert (won.reward, won.done, won.success, won.truncated) == (1.0, True, True, False)
        assert won.scores == (("solved", 1.0), ("requirements_met", 1.0))
        # An older position is another episode: what was sent after it has not been sent there.
        lost = one(env, said.state, "apis.supervisor.complete_task()")
        assert (lost.reward, lost.success, lost.done) == (0.0, False, True)
        assert "not met: the mail goes to the right person" in lost.feedback
        assert lost.progress == pytest.approx(2 / 3)


def test_an_answer_is_a_code_fence_that_is_read_whole(opened):
    with opened() as env:
        (task,) = env.sample(1, key("a"))
        guide = env.guide(task)
        assert isinstance(guide.answer, FenceForm)
        code = "for name in 'ab':\n    print(name)"
        read = Reader(guide.answer).read(f"I look.\n```python\n{code}\n```")
        assert read.action == code


def test_sets_are_the_datas_own_and_difficulty_keeps_the_easy_tasks(opened):
    with opened() as env, opened(difficulty=1) as easy:
        sizes = {name: len(env.panel(name, size).tasks) for name, size in (("dev", 4), ("test_normal", 3))}
        assert (len(env.sample(99, key(0))), sizes) == (6, {"dev": 4, "test_normal": 3})
        assert {task.kind for task in env.sample(99, key(0))} == {f"difficulty-{level}" for level in (1, 2, 3)}
        assert {task.kind for task in easy.sample(99, key(0))} == {"difficulty-1"}
        with pytest.raises(CoevoError, match=r"panel dev has 4 tasks, not 5: set evaluation\.tasks=4"):
            env.panel("dev", 5)
        with pytest.raises(CoevoError, match="has the panels dev, test_normal, test_challenge, not 'all'"):
            env.panel("all", 1)


def test_the_check_of_environments_is_clean_and_the_reference_solves_each_task(opened):
    with opened() as env:
        for index in range(6):
            state, observation = begun(env, index)
            moment = Moment("", (), (), observation)
            assert one(env, state, env.advise(state, moment, key()).action).success
        assert [str(each) for each in check_environment(env, tasks=3) if not each.passed] == []


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("1/0", "Execution failed. Traceback:"),
        ("def (", "Execution failed. Traceback:"),
        ("", "there is no code"),
        ("\x00", "Execution failed. Traceback:"),
        ("raise SystemExit(3)", None),
        ("print('x' * 10**6)", "x" * 1000),
        ("import os; os.write(1, b'{}\\n' * 10); print('mine')", "mine\n"),
        ("import sys; sys.__stdout__.write('loud'); sys.stdin.read(); print('mine')", "mine\n"),
        ("print('\\ud800')", "?\n"),
    ],
)
def test_what_code_prints_is_bounded_and_reaches_no_stream_of_the_protocol(opened, code, told):
    with opened(output=2000) as env:
        (step,) = env.try_step([begun(env)[0]], [code])
        if told is None:  # the world itself ends: nobody's code failed
            assert isinstance(step, EpisodeFailure)
            assert "SystemExit" in step.detail
            return
        assert step.observation.startswith(told)
        assert len(step.observation) < 2100
        assert step.done is False
        if "10**6" in code:
            assert "998001 bytes are left out" in step.observation


def test_code_that_takes_too_long_ends_its_own_episode_alone(opened):
    with opened(action_seconds=3.0) as env:
        first, second = begun(env)[0], begun(env, 1)[0]
        since = time.monotonic()
        slow, quick = env.try_step([first, second], ["while True: pass", "print(7)"])
        assert time.monotonic() - since < 20
        assert (slow.done, slow.success, slow.truncated, slow.reward) == (True, False, True, 0.0)
        assert "longer than 3 s" in slow.feedback
        assert quick.observation == "7\n"


def test_the_child_has_no_secrets_and_its_folder_and_process_go_with_the_episode(opened, monkeypatch):
    monkeypatch.setenv("A_TEST_SECRET_KEY", "s3cret")
    with opened() as env:
        code = "import os; print(dict(os.environ)); print(open('/proc/self/environ').read()); print(os.getpid())"
        step = one(env, begun(env)[0], code)
        variables, pid = step.observation, int(step.observation.split()[-1])
        assert "s3cret" not in variables
        assert "APPWORLD_ROOT" in variables
        gone = [Path(one(env, step.state, "print(os.getcwd())").observation.strip()), Path("/proc") / str(pid)]
        assert all(path.is_dir() for path in gone)
    deadline = time.monotonic() + 20
    while any(path.exists() for path in gone) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(path.exists() for path in gone)


def test_a_world_that_is_closed_twice_signals_nobody_else(tmp_path, monkeypatch):
    child = WorldChild(interpreter(tmp_path), str(app_data(tmp_path / "root")), 1000)
    signalled = []
    kill = os.killpg
    monkeypatch.setattr(os, "killpg", lambda *given: (signalled.append(given), kill(*given)))
    child.close()
    child.close()
    assert len(signalled) == 1


def test_a_child_that_dies_loses_its_episode_and_no_other(opened):
    with opened() as env:
        first, second = begun(env)[0], begun(env, 1)[0]
        died, lives = env.try_step([first, second], ["import os; os._exit(9)", "print(1)"])
        assert isinstance(died, EpisodeFailure)
        assert "has ended" in died.detail
        assert lives.observation == "1\n"


def test_a_reply_that_the_agents_code_forges_is_refused(opened):
    forged = json.dumps({"token": "0" * 32, "output": "", "completed": True}) + "\n"
    loop = "for number in range(3, 64):\n    try: os.write(number, {}.encode())\n    except OSError: pass"
    code = f"import os\n{loop.format(repr(forged))}"
    with opened() as env:
        (step,) = env.try_step([begun(env)[0]], [code])
        assert isinstance(step, EpisodeFailure)
        assert "not asked for" in step.detail


@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.full)])
def test_random_actions_never_raise_out_of_a_step(opened, count):
    rng = generator(key("code"))
    with opened(steps=1000) as env:
        states = [begun(env, index)[0] for index in range(4)]
        for number in range(count // 4):
            actions = [anything(rng) for _ in states]
            if number == 7:
                actions[0] = "x = '\x1b" + "9" * 10**6 + "'"
            steps = env.try_step(states, actions)
            assert not [step for step in steps if isinstance(step, EpisodeFailure)]
            states = [begun(env, index)[0] if step.done else step.state for index, step in enumerate(steps)]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"python": "/no/python"}, "/no/python is no interpreter: python -m venv DIR"),
        ({"python": None}, "AppWorld has no interpreter.*set APPWORLD_PYTHON"),
        ({"path": "/no/data"}, "/no/data has no data/tasks: appworld download data"),
    ],
)
def test_what_is_missing_is_one_line(tmp_path, monkeypatch, settings, says):
    monkeypatch.delenv("APPWORLD_PYTHON", raising=False)
    monkeypatch.delenv("APPWORLD_ROOT", raising=False)
    given = {"path": str(app_data(tmp_path / "root")), "python": interpreter(tmp_path), **settings}
    with pytest.raises(CoevoError, match=says) as caught:
        make(AppWorldConfig(**given))
    assert "\n" not in str(caught.value)


def test_an_interpreter_without_appworld_and_a_world_that_does_not_open_lose_the_episode(tmp_path):
    root = app_data(tmp_path / "root", broken=True)
    for python, says in ((sys.executable, "No module named 'appworld'"), (interpreter(tmp_path), "database is broken")):
        with closing(make(AppWorldConfig(path=str(root), python=python))) as env:
            (found,) = env.try_start(env.sample(1, key(0)))
            assert isinstance(found, EpisodeFailure)
            assert says in found.detail


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"action_seconds": 50.0}, "action_seconds=50 is not 20 below"),
        ({"output": 5000, "simulator": SimulatorConfig(longest=100)}, "output=5000 is above simulator.longest=100"),
    ],
)
def test_limits_that_do_not_fit_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        AppWorldConfig(**settings)


@real
def test_appworld_itself_has_the_calls_that_the_adapter_makes():
    code = (
        "import inspect; from appworld import AppWorld; from appworld.evaluator import TestTracker\n"
        "assert {'task_id', 'experiment_name'} <= set(inspect.signature(AppWorld.__init__).parameters)\n"
        "assert all(callable(getattr(AppWorld, name)) for name in ('execute', 'task_completed', 'evaluate'))\n"
        "assert {'success', 'pass_count', 'num_tests'} <= set(dir(TestTracker))\n"
        "tracker = TestTracker(test_data=[{'requirement': 'a mail', 'label': 'no_op_fail'}])\n"
        "with tracker('a mail'): assert False\n"
        "print(tracker.failures[0]['requirement'], tracker.success, tracker.pass_count, tracker.num_tests)\n"
    )
    told = subprocess.run([REAL, "-P", "-c", code], check=True, capture_output=True, text=True, timeout=120)
    assert told.stdout.split() == ["a", "mail", "False", "0", "1"]
