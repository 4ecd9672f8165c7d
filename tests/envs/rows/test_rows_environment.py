"""The environment over a table: rewards add up, and nothing that comes from outside gets further than its episode."""

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace

import pytest
from support.row_functions import WORDS
from support.row_tables import ROWS, configured, made, rated, written

from coevo.envs.base import Guide, MissingPartError
from coevo.envs.failures import EpisodeFailure
from coevo.envs.registry import make
from coevo.records.answer_form import WholeForm
from coevo.records.draws import generator, key
from coevo.tasks.checks.environment_check import check_environment
from coevo.utilities.errors import CoevoError, ConfigError


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return written(tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="module")
def env(path):
    reward = [rated("exact", weight=0.8), rated("short", weight=0.2)]
    with closing(make(configured(path, reward, answer="answer", scope="topic", success=0.8))) as opened:
        yield opened


def answered(env, task, answer):
    (step,) = env.try_step([task], [answer])
    return step


def test_rewards_add_up_by_their_weights_and_are_told_apart(env):
    (task,) = env.sample(1, key("a"))
    right, wrong = (answered(env, task, answer) for answer in (task.data["row"]["answer"], "no idea"))
    assert (right.reward, right.success, right.done) == (1.0, True, True)
    assert right.scores == (("exact", 1.0), ("short", 1.0))
    assert (wrong.reward, wrong.success, wrong.valid) == (0.05, False, True)
    assert wrong.feedback == "reward 0.05: exact 0, short 0.25"


def test_an_answer_that_is_right_and_not_the_best_is_a_success_from_the_threshold_on(env, path):
    (task,) = env.sample(1, key("a"))
    padded = f"{task.data['row']['answer']}       "
    assert answered(env, task, padded).success
    with closing(made(path, [rated("exact", weight=0.8), rated("short", weight=0.2)])) as strict:
        assert not answered(strict, task, padded).success
        assert strict.version != env.version


def test_the_promises_of_an_environment_hold(env):
    assert [str(each) for each in check_environment(env, actions=("1", "17")) if not each.passed] == []


def test_any_text_is_an_action_and_the_prompt_says_what_it_is_for(env, path):
    (task,) = env.sample(1, key("a"))
    assert env.guide(task) == Guide("Your action is the answer to the task.", answer=WholeForm())
    with closing(made(path, instructions="Answer with a number.")) as told:
        assert told.guide(task).text == "Answer with a number."
        assert [str(each) for each in check_environment(told, actions=("17",)) if each.name == "guide"] == [
            "ok    guide: any text is an action"
        ]


def test_no_answer_earns_the_least(path):
    with closing(made(path, [rated("exact"), rated("signed", low=-1.0), rated("short", weight=-0.5)])) as env:
        step = answered(env, env.sample(1, key("a"))[0], " \n")
        assert (step.reward, step.valid, step.done, step.success) == (-1.5, False, True, False)
        assert env.reward_range == (-1.5, 2.0)


def test_a_task_holds_its_row_and_plays_alike_in_another_process_and_without_its_table(env, path, tmp_path):
    tasks = env.sample(8, key("a"))
    script = (
        "import sys, json; from support.row_tables import made; from coevo.records.draws import key\n"
        f"env = made({str(path)!r}, scope='topic')\n"
        "print(json.dumps([task.id for task in env.sample(8, key('a'))]))"
    )
    path_of_tests = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=path_of_tests).stdout
    assert json.loads(said) == [task.id for task in tasks]
    with closing(made(written(tmp_path, ROWS[:40]), [rated("exact", weight=0.8), rated("short", weight=0.2)])) as other:
        mine, theirs = (made.try_step(tasks, ["1"] * 8) for made in (env, other))
    assert [replace(step, success=False) for step in mine] == [replace(step, success=False) for step in theirs]


def test_panels_are_stable_apart_from_training_and_refused_beyond_their_rows(env):
    panel = env.panel("held-out", 5)
    assert panel.tasks == env.panel("held-out", 8).tasks[:5]
    assert not {task.id for task in panel.tasks} & {task.id for task in env.sample(1000, key("b"))}
    with pytest.raises(CoevoError, match=r"panel held-out has \d+ rows, not 99: set evaluation\.tasks="):
        env.panel("held-out", 99)
    with pytest.raises(CoevoError, match="has the panels held-out, not 'test'"):
        env.panel("test", 1)


WRONG = {
    "nan": "invalid: reward moody: it returned nan, which is not between low=0 and high=1",
    "inf": "invalid: reward moody: it returned inf",
    "big": "invalid: reward moody: it returned 7",
    "negative": "invalid: reward moody: it returned -0.5",
    "text": "invalid: reward moody: it returned '1', a str, not a number",
    "none": "invalid: reward moody: it returned None, a NoneType, not a number",
    "list": "invalid: reward moody: it returned [1.0], a list, not a number",
    "object": "invalid: reward moody: it returned <object",
    "huge": "exception: reward moody: OverflowError",
    "raise": "exception: reward moody: KeyError: 'no such thing' (row_functions.py:",
    "leave": "exception: reward moody: SystemExit: 1",
    "hang": "timeout: reward moody: no answer in 4 s",
    "die": "crash: reward moody: its process ended with exit code 3",
}


def test_what_a_reward_does_costs_its_own_episode_alone(path):
    assert WORDS.keys() < WRONG.keys()
    with closing(made(path, rated("moody", seconds=4.0))) as env:
        tasks = env.sample(2 * len(WRONG), key("a"))
        actions = [each for wrong in WRONG for each in (wrong, "fine")]
        steps = env.try_step(tasks, actions)
        for action, step in zip(actions, steps, strict=True):
            assert step.reward == 1.0 if action == "fine" else str(step).startswith(WRONG[action]), (action, step)
        assert answered(env, tasks[0], "mutate").reward == 1.0
        assert tasks[0].data["row"]["prompt"]


def test_a_run_goes_on_after_a_hang_within_seconds(path):
    with closing(made(path, rated("moody", seconds=3))) as env:
        tasks = env.sample(4, key("a"))
        assert answered(env, tasks[0], "fine").reward == 1.0
        since = time.monotonic()
        steps = env.try_step(tasks, ["hang", "fine", "hang", "fine"])
        assert time.monotonic() - since < 60
        assert [isinstance(step, EpisodeFailure) for step in steps] == [True, False, True, False]


def test_results_do_not_depend_on_workers(path):
    found = []
    for workers in (1, 3):
        with closing(made(path, [rated("exact"), rated("short")], workers=workers)) as env:
            tasks = env.sample(30, key("a"))
            found.append(env.try_step(tasks, [str(n) for n in range(30)]))
    assert found[0] == found[1]


def anything(rng):
    """A random text: control characters, halves of pairs, JSON, and once in a while a megabyte of one character."""
    kind = int(rng.integers(6))
    size = int(rng.integers(1, 40))
    if kind == 0:
        return "".join(map(chr, rng.integers(0, 32, size)))
    if kind == 1:
        return "".join(map(chr, rng.integers(0, 0x110000, size)))
    if kind == 2:
        return chr(int(rng.integers(0, 0xD800))) * (10**6 if rng.integers(400) == 0 else size)
    if kind == 3:
        return json.dumps({"name": rng.choice(["add", "answer", "no"]), "arguments": {"a": size, "answer": "x" * size}})
    return "".join(rng.choice(list('{}[]":,ab\\ \n\0'), size))


@pytest.mark.parametrize("tools", [(), ("support.row_functions:add",)])
def test_ten_thousand_random_actions_never_raise_out_of_a_step(path, tools):
    rng = generator(key("random actions"))
    with closing(made(path, tools=tools)) as env:
        tasks, failed = env.sample(40, key("a")), []
        for _ in range(125):
            actions = [anything(rng) for _ in tasks]
            failed += [step for step in env.try_step(tasks, actions) if isinstance(step, EpisodeFailure)]
            failed += [step for task in tasks if isinstance(step := answered(env, task, anything(rng)), EpisodeFailure)]
    assert failed == []


def test_tools_are_called_and_an_answer_ends_the_episode(path):
    with closing(
        made(path, tools=("support.row_functions:add", "support.row_functions:troubled"), tool_seconds=4.0)
    ) as env:
        (task,) = env.sample(1, key("a"))
        assert [tool["name"] for tool in env.guide(task).tools] == ["add", "troubled", "answer"]

        def calling(name, **arguments):
            return answered(env, task, json.dumps({"name": name, "arguments": arguments}))

        added = calling("add", a=2)
        assert (added.observation, added.done, added.valid, added.reward) == ("5", False, True, 0.0)
        assert calling("add", a="x").valid is False
        ended = calling("answer", answer=task.data["row"]["answer"])
        assert (ended.reward, ended.success, ended.done) == (1.0, True, True)
        told = {"value": "ValueError: so it is", "key": "KeyError: 'so it is'", "zero": "ZeroDivisionError: so it is"}
        for how, says in told.items():
            step = calling("troubled", how=how)
            assert (step.feedback, step.valid, step.done) == (says, False, False)
        lost = {
            "hang": "timeout: tool: no answer in 4 s",
            "die": "crash: tool: its process ended",
            "other": "exception: tool: RuntimeError: so it is",
            "long": "invalid: tool: a result of 200000 characters",
        }
        for how, says in lost.items():
            assert str(calling("troubled", how=how)).startswith(says)


def test_demonstrations_are_the_rows_that_are_marked(tmp_path, path):
    parts = ("train", "demonstration", "test")
    rows = [{**row, "part": parts[number % 3]} for number, row in enumerate(ROWS)]
    with closing(made(written(tmp_path, rows), split="part", answer="answer")) as env:
        shown = env.demonstrations(30, 5, key("a"))
        assert {each.moment.instruction for each in shown} <= {row["prompt"] for row in rows[1::3]}
        assert len(shown) == 35
        assert all(str(int(each.moment.instruction.split()[2]) + 1) == each.answer.action for each in shown)
        probe = env.probe(8, key("b"))
        assert [len(each) for each in (probe.tasks, probe.right, probe.wrong)] == [8, 8, 0]
        words = set(env.vocabulary)
        assert {"what", "plus", "60", "open"} <= words
    with closing(made(path)) as env, pytest.raises(MissingPartError, match="rows has no demonstrations"):
        env.demonstrations(1, 1, key("a"))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"prompt": "question"}, r"env\.prompt=question: .* has no such column; it has prompt, answer, topic"),
        ({"scope": "nothing"}, r"env\.scope=nothing"),
        ({"reward": rated("nothing")}, r"env\.reward = 'support\.row_functions:nothing': .* has no nothing"),
        ({"reward": rated("NO_FUNCTION")}, "a int is no function"),
        ({"reward": rated("three")}, r"does not take two arguments: write def f\(answer, row\) -> float"),
        ({"reward": rated("slow")}, "call=plain takes .*: set call: async"),
        ({"reward": rated("exact", call="async")}, "write it with async def, or set call: plain"),
        ({"reward": {"function": "nobody_has:this"}}, "nobody_has cannot be imported"),
    ],
)
def test_what_the_table_or_the_code_lacks_is_one_line(path, settings, says):
    with pytest.raises(ConfigError, match=says) as caught:
        made(path, **settings)
    assert "\n" not in str(caught.value)
