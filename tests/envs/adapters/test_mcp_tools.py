"""Tools of an MCP server as actions: over a process's streams and over HTTP, with answers that functions reward."""

import sys
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import ValidationError
from support.adapted import RANDOM_ACTIONS, begun, call, failures, one
from support.mcp_server import FATAL, http_server
from support.row_tables import written

from coevo.configs.adapter_config import McpConfig
from coevo.envs.failures import EpisodeFailure
from coevo.envs.registry import make
from coevo.records.draws import key
from coevo.tasks.checks.environment_check import check_environment
from coevo.utilities.errors import ConfigError

COMMAND = (sys.executable, "-S", str(Path(__file__).parents[2] / "support/mcp_server.py"))
ACTIONS = [call("add", a=1, b=2), call("keep", text="x"), call("notes"), call("answer", answer="3")]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return written(tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="module")
def server():
    with http_server() as found:
        yield found


def opened(path, reward="support.row_functions:exact", **settings):
    return closing(make(McpConfig(rows=str(path), reward=(reward,), **settings)))


@pytest.fixture(params=["process", "http"])
def env(request, path, server):
    with opened(path, **({"url": server[0]} if request.param == "http" else {"command": COMMAND})) as made:
        yield made


def test_tools_are_called_and_an_answer_is_rewarded(env):
    (task,) = env.sample(1, key("a"))
    row, (state, seen) = task.data["row"], env.start(task)
    assert (task.instruction, seen) == (row["prompt"], "the task is open")
    assert [tool["name"] for tool in env.guide(task).tools] == ["add", "keep", "notes", "answer"]
    added = one(env, state, call("add", a=20, b=22))
    assert (added.observation, added.valid, added.done, added.reward) == ("42", True, False, 0.0)
    right, wrong = (one(env, added.state, call("answer", answer=each)) for each in (row["answer"], "no idea"))
    assert (right.reward, right.success, right.done, right.scores) == (1.0, True, True, (("exact", 1.0),))
    assert (wrong.reward, wrong.success, wrong.done) == (0.0, False, True)


def test_an_episode_is_a_session_and_equal_histories_share_none(env):
    state, _ = begun(env)
    kept = one(env, state, call("keep", text="first"))
    assert one(env, kept.state, call("keep", text="second")).observation == "2 notes"
    assert one(env, kept.state, call("notes")).observation == "first"
    assert one(env, state, call("notes")).observation == "there are none\n[image]"


def test_the_policy_reads_why_a_call_failed(env):
    state, _ = begun(env)
    for action, says in (
        ("hello", "no call of a tool"),
        (call("fly"), "there is no such tool"),
        (call("answer", answer=3), "there is no such tool with these arguments"),
        (call("add", a=1), "error: bad call: 'b'"),
        (call("notes"), "there are none"),
    ):
        step = one(env, state, action)
        assert (step.valid, step.done, says in step.feedback) == (False, False, True), step
        state = step.state


def test_calls_have_a_limit(path):
    with opened(path, command=COMMAND, steps=2, tools=("notes", "add")) as made:
        state, _ = begun(made)
        assert [tool["name"] for tool in made.guide(state.task).tools] == ["add", "notes", "answer"]
        cut = one(made, one(made, state, call("add", a=1, b=1)).state, call("keep", text="x"))
        assert (cut.done, cut.truncated, cut.success, cut.reward) == (True, True, False, 0.0)


def test_a_token_is_sent_and_sessions_are_closed(path, server, monkeypatch):
    monkeypatch.setenv("NOTES_TOKEN", "sesame")
    url, books = server
    with opened(path, url=url, key="NOTES_TOKEN") as made:
        state, _ = begun(made)
        assert one(made, state, call("notes")).observation
        token, version, session = books.seen[-1]
        assert (token, version) == ("Bearer sesame", "2025-06-18")
        assert session in books.sessions
    assert session not in books.sessions
    assert books.seen[0][1] is None
    monkeypatch.delenv("NOTES_TOKEN")
    with opened(path, url=url, key="NOTES_TOKEN") as made, pytest.raises(ConfigError, match="no token in NOTES_TOKEN"):
        made.guide(made.sample(1, key("a"))[0])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"command": ("no-such-program",)}, "env.command=no-such-program: No such file or directory"),
        ({"command": (sys.executable, "-c", "")}, "the MCP server has ended"),
        ({"command": (sys.executable, "-c", "print('hello'); input()")}, "the MCP server sends no RpcMessage"),
        ({"url": "http://127.0.0.1:9/mcp"}, "env.url=http://127.0.0.1:9/mcp: it does not answer"),
        ({"command": COMMAND, "tools": ("fly",)}, "the MCP server has no 'fly'; it has add, keep, notes"),
        ({"command": COMMAND, "reward": "support.row_functions:no"}, "env.reward = 'support.row_functions:no'"),
    ],
)
def test_what_is_no_server_is_one_line(path, settings, says):
    with opened(path, **settings) as made, pytest.raises(ConfigError) as caught:
        made.guide(made.sample(1, key("a"))[0])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_server_is_named():
    for settings in ({}, {"command": ("a",), "url": "http://localhost"}, {"command": ("a",), "key": "TOKEN"}):
        with pytest.raises(ValidationError):
            McpConfig(rows="x.jsonl", reward=("a:b",), **settings)


def test_a_server_that_dies_costs_its_own_episode_alone(path):
    with opened(path, command=COMMAND) as made:
        tasks = made.sample(2, key("a"))
        states = [state for state, _ in made.try_start(tasks)]
        steps = made.try_step(states, [call("add", a=FATAL, b=1), call("add", a=1, b=1)])
        assert "the MCP server has ended" in str(steps[0])
        assert isinstance(steps[0], EpisodeFailure)
        assert steps[1].observation == "2"


def test_every_promise_of_the_interface_holds(path, server):
    with opened(path, url=server[0]) as made:
        assert [str(each) for each in check_environment(made, tasks=2, actions=ACTIONS) if not each.passed] == []


@pytest.mark.parametrize("count", RANDOM_ACTIONS)
def test_random_actions_never_raise_out_of_a_step(path, server, count):
    with opened(path, url=server[0], steps=1000) as made:
        assert failures(made, count, calls=("add", "keep", "notes", "answer"), side_by_side=40) == []
