"""The shell tasks: experts, verdicts, the original's files, repetition, lost episodes, and texts of all kinds."""

import json
import os
import re
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from coevo.configs.env import PluginEnvConfig
from coevo.envs.base import Step
from coevo.envs.failures import EpisodeFailure
from coevo.envs.lifelong.lifelong_os import LifelongOs
from coevo.envs.lifelong.sandbox import refusal
from coevo.envs.lifelong.shell_tasks import THEN, shell_panel, shell_task, shell_tasks, split_of
from coevo.envs.registry import make
from coevo.records.draws import generator, key
from coevo.tasks.checks.environment_check import check_environment
from coevo.utilities.errors import CoevoError, ConfigError

pytestmark = pytest.mark.skipif(bool(refusal()), reason=refusal() or "it can be started")
REAL = Path(os.environ.get("LIFELONG_AGENT_BENCH_DIR") or "/nowhere")


@pytest.fixture(scope="module")
def env():
    with closing(LifelongOs()) as made:
        yield made


def played(env, task, *actions):
    """Steps of an episode: of actions, or of the oracle."""
    (state, _), steps = env.start(task), []
    while not steps or not (steps[-1].done or len(steps) == len(actions)):
        action = actions[len(steps)] if actions else env.advise(state, None, key(0)).action
        steps += env.step([state], [action])
        state = steps[-1].state
    env.release([state])
    return steps


def task_of(setup="", judge="true", steps=5):
    return shell_task("files", "a task", {"setup": setup, "solution": "true", "judge": judge}, [], steps, "train")


def test_the_oracle_solves_every_task_and_doing_nothing_solves_none(env):
    for task in (*env.sample(3, key("solved")), *env.panel("held-out", 2).tasks):
        first, last = played(env, task)
        assert (first.valid, last.success, last.reward, last.feedback) == (True, True, 1.0, "right"), task.data[
            "solution"
        ]
        (nothing,) = played(env, task, "finish")
        assert not nothing.success
        assert nothing.feedback.startswith("wrong: ")


@pytest.mark.parametrize("wishes", [1, 2, 4])
def test_a_task_is_in_one_split_whatever_its_steps_and_the_order_of_its_wishes(wishes):
    draw = key("split", wishes)
    for split in ("train", "held-out", "fresh"):
        for task in shell_tasks(("files", "accounts"), wishes, 5, 20, draw, split):
            scripts = {name: "\n".join(task.data[name].split("\n")[::-1]) for name in ("setup", "solution", "judge")}
            words = THEN.join(task.instruction.split(THEN)[::-1])
            for steps in (2, 5, 50):
                assert split_of(shell_task(task.kind, words, scripts, task.data["skills"], steps, split)) == split


def test_training_repeats_its_tasks_once_they_are_used_up_and_a_panel_says_how_many_it_has():
    drawn = shell_tasks(("accounts",), 1, 5, 1_000, key("many"), "train")
    different = len({task.id for task in drawn})
    assert len(drawn) == 1_000
    assert 500 < different < 1_000
    assert drawn[different:] == drawn[: 1_000 - different]
    with pytest.raises(CoevoError, match=r"has \d+ tasks of accounts with 1 wish\(es\) for held-out, not 900: request"):
        shell_panel(("accounts",), 1, 5, "held-out", 900)


@pytest.mark.full
@pytest.mark.parametrize("wishes", [1, 4])
def test_the_oracle_solves_tasks_of_any_size(wishes):
    with closing(LifelongOs(wishes=wishes)) as env:
        for task in env.sample(30, key("size", wishes)):
            assert played(env, task)[-1].success, task.data["solution"]


@pytest.mark.full
def test_the_check_of_environments_is_clean():
    options = {"kinds": ["files"], "wishes": 1}
    results = check_environment(make(PluginEnvConfig(type="lifelong-os", options=options)), tasks=3)
    assert [str(each) for each in results if not each.passed] == []


def test_a_shell_stays_for_the_episode_and_tells_what_scripts_did(env):
    task = task_of("echo pear > /srv/fruit", "[ -f /srv/done ] || { echo /srv/done is missing; exit 1; }")
    steps = played(env, task, "bash cd /srv; x=$(cat fruit)", "Bash\necho $x; false", "dance", "bash exit 3", "bash :")
    assert [(step.observation, step.feedback, step.valid) for step in steps[:4]] == [
        ("no output", "exit status 0", True),
        ("pear", "exit status 1", True),
        ("error: an action is bash with a script, or finish", "failed", False),
        ("no output", "exit status 3, the shell has ended", True),
    ]
    assert (steps[4].done, steps[4].truncated, steps[4].success) == (True, True, False)
    assert steps[4].feedback == "exit status 0, and not finished"
    assert played(env, task, "bash cd /srv", "bash cat fruit; echo \a; false")[-1].observation == "pear\n\ufffd"
    assert played(env, task, "finish")[-1].feedback == "wrong: /srv/done is missing"
    assert played(env, task, "bash touch /srv/done", "finish")[-1].success
    assert played(env, task, f"bash {'x' * 30_000}")[-1].observation == "error: a script has at most 20000 bytes"
    assert played(env, task, "bash seq 9999")[-1].observation.endswith(" [...]")


def test_an_episode_is_the_same_in_another_sandbox_for_the_same_actions(env):
    task = env.sample(1, key("same"))[0]
    actions = ("bash ls -la / /etc; date; id", "bash useradd zoe; chage -l zoe; tail -1 /etc/passwd", "finish")
    first, again = ([step.observation for step in played(env, task, *actions)] for _ in range(2))
    assert first == again
    (state, _) = env.start(task)
    (moved,) = env.step([state], ["bash touch /srv/one"])
    branches = env.step([moved.state, moved.state], ["bash ls /srv/one"] * 2)
    assert [step.observation for step in branches] == ["/srv/one"] * 2
    (old,) = env.step([state], ["bash ls /srv/one"])
    assert "No such file" in old.observation
    env.release([step.state for step in (*branches, old)])


def test_an_episode_whose_sandbox_or_worker_ends_is_lost_and_not_the_agents_failure():
    with closing(LifelongOs(kinds=["files"], wishes=1)) as env:
        task = task_of()
        for number in (1, 2):
            ((state, _),) = env.try_start([task])
            ended = threading.Thread(target=end_children, args=(number,))
            ended.start()
            (lost,) = env.try_step([state], ["bash sleep 6"])
            ended.join()
            assert isinstance(lost, EpisodeFailure), lost
            assert lost.kind == {1: "exception", 2: "crash"}[number]
        assert played(env, task, "finish")[-1].success


def end_children(number):
    """End the sandbox that sleeps: 1, or the worker that holds it: 2."""
    give_up = time.monotonic() + 20
    while time.monotonic() < give_up:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                held = b"sandbox_init.py" in path.read_bytes()
                parent = int((path.parent / "stat").read_bytes().rpartition(b")")[2].split()[1])
                if held and b"sandbox_init.py" not in Path(f"/proc/{parent}/cmdline").read_bytes() and ours(parent):
                    time.sleep(0.5)
                    os.kill(int(path.parent.name) if number == 1 else parent, signal.SIGKILL)
                    return
            except OSError:
                continue


def ours(pid):
    """True for a process below this one."""
    while pid > 1 and pid != os.getpid():
        pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    return pid == os.getpid()


def test_files_of_the_original_are_read(tmp_path):
    item = {"command_name": "bash", "script": "touch /srv/done"}
    entry = {
        "instruction": "create /srv/done", "skill_list": ["touch"], "raw_entry_hash": 1,
        "initialization_command_item": item | {"script": "mkdir -p /srv; exit 0"},
        "evaluation_info": {
            "ground_truth_command_item": item, "evaluation_command_item": item | {"script": "test -f /srv/done"},
        },
    }  # fmt: skip
    python = entry | {"initialization_command_item": item | {"command_name": "python"}}
    entries = {str(n): entry | {"instruction": f"create /srv/done, {n}"} for n in range(20)} | {"p": python}
    (tmp_path / "entry_dict.json").write_text(json.dumps(entries))
    with closing(LifelongOs(path=str(tmp_path))) as env:
        assert re.fullmatch(r"2 LifelongAgentBench/[0-9a-f]{12}", env.version)
        (task,), (held,) = env.sample(1, key("real")), env.panel("held-out", 1).tasks
        assert task.id != held.id
        with closing(LifelongOs(path=str(tmp_path), steps=9)) as longer:
            said = [{each.instruction for each in made.sample(60, key(0))} for made in (env, longer)]
            assert said[0] == said[1], "no task is in another split with more steps"
        assert played(env, task)[-1].success
        assert not played(env, held, "finish")[-1].success
        with pytest.raises(CoevoError, match=r"has \d+ tasks in these files, not 99"):
            env.panel("held-out", 99)


@pytest.mark.full
@pytest.mark.skipif(not REAL.is_dir(), reason="the original's files are not here: set LIFELONG_AGENT_BENCH_DIR")
def test_real_tasks_are_solved_by_their_own_scripts():
    with closing(LifelongOs(path=str(REAL))) as env:
        assert all(played(env, task)[-1].success for task in env.sample(40, key("real")))


def test_a_wrong_call_is_one_line(tmp_path):
    for options, says in (
        ({"kinds": []}, "name files, accounts or both"), ({"kinds": ["dance"]}, "name files, accounts or both"),
        ({"wishes": 5}, "wishes are 1 to 4"), ({"steps": 1}, "steps 2 to 50"),
        ({"path": str(tmp_path)}, "has no entry_dict.json"),
    ):  # fmt: skip
        with pytest.raises((CoevoError, ConfigError), match=says):
            LifelongOs(**options)
    with pytest.raises(CoevoError, match="choose one of held-out"):
        LifelongOs().panel("other", 1)
    with pytest.raises(CoevoError, match="cannot be prepared: not ready"):
        LifelongOs(kinds=["files"]).open(task_of("echo not ready; exit 1"), key(0))


def test_a_refusal_is_said_at_construction(monkeypatch):
    monkeypatch.setattr("coevo.envs.lifelong.lifelong_os.refusal", lambda accounts: f"refused {accounts}")
    with pytest.raises(CoevoError, match="lifelong-os: refused False"):
        LifelongOs(kinds=["files"])


@pytest.mark.full
def test_no_text_raises_out_of_a_step():
    pieces = (
        "ls", "echo", "cat", "'", '"', "`", "$(", ")", "(", "{", "}", ";", "|", "&", ">", "<", "<<", "EOF", "\n",
        "\r", "\0", "\x1b[2J", "\ud800", "\u202e", "🙂", "exit", "exec", "kill -9 $$", "9", "1>&9", "rm -rf /*",
        "cd /nowhere", "if", "then", "fi", "done", "set -e", "false", "return", "break", "\\", "#", "*", "~", "!",
        "unset PATH", "trap",
    )  # fmt: skip
    rng, state = generator(key("hostile")), None
    with closing(LifelongOs(kinds=["files"], steps=50)) as env:
        (task,) = env.sample(1, key("hostile"))
        for index in range(500):
            text = "".join(
                pieces[number] + " " * (number % 2) for number in rng.integers(len(pieces), size=rng.integers(7))
            )
            text = text * (1_000_000 // max(1, len(text))) if index % 250 == 249 else text
            if state is None:
                state, _ = env.start(task)
            (step,) = env.try_step([state], [f"bash {text}" if index % 5 else text])
            assert isinstance(step, Step), f"{text[:80]!r}: {step}"
            state = None if step.done else step.state
