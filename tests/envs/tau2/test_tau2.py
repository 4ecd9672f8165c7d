"""tau2 on a small checkout: solo, and with a user model."""

import json
from contextlib import closing, contextmanager

import pytest
from support.adapted import RANDOM_ACTIONS, call, failures, one
from support.bench_checkout import DONE, SMALL, TEST, TRAIN, Customer, checkout, every_task, solved
from support.completions import HANGS, Answer, completions, refused, said

from coevo.configs.benchmark_config import Tau2Config, UserModelConfig
from coevo.configs.simulator_config import SimulatorConfig
from coevo.envs.base import MissingPartError
from coevo.envs.failures import EpisodeFailure
from coevo.envs.registry import make, with_panel
from coevo.models.answers.read import Reader
from coevo.records.answer_form import CallForm
from coevo.records.draws import key
from coevo.tasks.checks.environment_check import check_environment
from coevo.utilities.errors import CoevoError

CALLS = ("open_line", "show_line", "calculate", "restart", "show_device", "respond", "done", "no_tool")


@pytest.fixture
def bench(tmp_path):
    return checkout(tmp_path)


@pytest.fixture
def opened(bench, monkeypatch):
    monkeypatch.delenv("TAU2_BENCH_PYTHON", raising=False)

    def open_it(**settings):
        return closing(make(Tau2Config(path=str(bench), **settings)))

    return open_it


def test_solo_play_is_a_ticket_the_tools_of_both_sides_and_an_end(opened):
    with opened() as env:
        task = next(task for task in env.sample(TRAIN, key("a")) if task.data["task"].endswith("|restart"))
        guide, number = env.guide(task), task.instruction.split()[1]
        names = ["open_line", "show_line", "calculate", "restart", "show_device", "done"]
        assert [tool["name"] for tool in guide.tools] == names
        assert "# main_policy_solo.md\nBe kind.\n" in guide.text
        state, _ = env.start(task)
        shown = one(env, state, call("show_line", number=number))
        assert json.loads(shown.observation)["open"] is False
        half = one(env, one(env, shown.state, call("open_line", number=number)).state, DONE)
        assert (half.reward, half.done, half.success) == (0.0, True, False)
        assert half.feedback == "the task is over\nis_restarted is not as the task needs it\nreward 0"
        restarted = one(env, one(env, shown.state, call("open_line", number=number)).state, call("restart"))
        won = one(env, restarted.state, DONE)
        assert (won.reward, won.success, won.scores) == (1.0, True, (("env_assertion", 1.0),))


def test_reference_solutions_solve_all_tasks_and_an_empty_agent_none(opened):
    with opened() as env:
        tasks = every_task(env)
        assert len(tasks) == TRAIN + TEST
        assert [solved(env, task).reward for task in tasks] == [1.0] * len(tasks)
        assert [one(env, env.start(task)[0], DONE).success for task in tasks] == [False] * len(tasks)


@pytest.mark.parametrize("basis", [[], ["NL_ASSERTION"]])
def test_tasks_of_which_nothing_is_judged_are_left_out_and_counted(bench, opened, basis):
    listed = bench / "data" / "tau2" / "domains" / "telecom" / "tasks.json"
    tasks = json.loads(listed.read_text())
    for each in (0, TRAIN):
        tasks[each]["evaluation_criteria"]["reward_basis"] = basis
    listed.write_text(json.dumps(tasks))
    with opened() as env:
        assert env.version.endswith(" without 2")
        assert len(every_task(env)) == TRAIN + TEST - 2
        assert not {tasks[0]["id"], tasks[TRAIN]["id"]} & {task.data["task"] for task in every_task(env)}
    for each in tasks:
        each["evaluation_criteria"]["reward_basis"] = basis
    listed.write_text(json.dumps(tasks))
    with pytest.raises(CoevoError, match="no task of train has a reward_basis that is judged: ACTION, COMMUNICATE"):
        opened()


def test_the_check_of_environments_is_clean(opened):
    with opened(simulator=SimulatorConfig(workers=1)) as env:
        assert [str(each) for each in check_environment(env, tasks=4) if not each.passed] == []


def test_the_same_task_and_actions_are_the_same_episode_in_other_processes(opened):
    def recorded(env):
        states = [env.start(task)[0] for task in env.sample(6, key("a"))]
        played = []
        for action in (call("show_line", number="n1"), call("restart"), "\x00", call("open_line", number="n1"), DONE):
            steps = env.try_step(states, [action] * len(states))
            states = [step.state for step in steps]
            played.append([(step.observation, step.feedback, step.reward, step.valid) for step in steps])
        return played

    with opened() as first, opened(simulator=SimulatorConfig(workers=1)) as second:
        assert recorded(first) == recorded(second)


def test_an_answer_is_a_call_that_is_read_whole(opened):
    with opened() as env:
        guide = env.guide(env.sample(1, key(0))[0])
        assert guide.answer == CallForm()
        action = call("open_line", number="n1")
        read = Reader(guide.answer, guide.tools).read(f"<tool_call>\n{action}\n</tool_call>")
        assert json.loads(read.action) == json.loads(action)


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ("open the line", "this is no call of a tool"),
        ("", "this is no call of a tool"),
        ("[" * 10**6, "this is no call of a tool"),
        (call("no_tool"), "there is no tool 'no_tool'"),
        (call("respond", message="hello"), "there is no tool 'respond'"),
        (call("open_line", number="n9"), "Error: KeyError"),
        (call("open_line"), "Error: TypeError"),
        (call("open_line", number="n1", requestor="user"), "Error: TypeError"),
        (call("calculate", expression="9**9**9**9"), "error: an expression has at most 200 characters and no power"),
        (call("calculate", expression="9* *9"), "error: an expression has"),
        (call("calculate", expression="1+" * 200), "error: an expression has"),
    ],
)
def test_calls_that_fail_are_told_and_counted(opened, action, told):
    with opened(errors=2) as env:
        step = one(env, env.start(env.sample(1, key(0))[0])[0], action)
        assert step.observation.startswith(told)
        assert (step.valid, step.done) == ("KeyError" in told, False)  # understood, but there is no such line
        cut = one(env, step.state, action)
        assert (cut.done, cut.truncated, cut.success, cut.reward) == (True, True, False, 0.0)
        assert "too many errors" in cut.feedback


def test_a_task_that_is_not_ended_is_cut_without_a_reward(opened):
    with opened(steps=1) as env:
        task = next(task for task in env.sample(TRAIN, key("a")) if "|" not in task.data["task"])
        step = one(env, env.start(task)[0], call("open_line", number=task.instruction.split()[1]))
        assert (step.done, step.truncated, step.reward, step.valid) == (True, True, 0.0, True)


def test_a_worker_that_dies_loses_its_own_episode_alone(opened):
    def played(env):
        states = [env.start(task)[0] for task in env.sample(2, key("a"))]
        return env.try_step(states, [call("open_line", number="the plug"), call("open_line", number="n1")])

    with opened() as env, served(opened, "hello") as (talking, _):
        for died, lives in (played(env), played(talking)):
            assert isinstance(died, EpisodeFailure)
            assert died.kind == "crash"
            assert lives.observation == "the line is open"


@pytest.mark.parametrize("count", RANDOM_ACTIONS)
def test_random_actions_never_raise_out_of_a_step(opened, count):
    with opened(errors=10_000, steps=200) as env:
        assert failures(env, count, CALLS, side_by_side=12) == []


def test_splits_are_the_authors_and_difficulty_is_the_number_of_faults(opened):
    with opened() as env, opened(faults=1) as easy, opened(tasks="small") as small:
        panel = env.panel("solo", TEST)
        assert len({task.id for task in env.sample(999, key(0))} | {task.id for task in panel.tasks}) == TRAIN + TEST
        assert env.panel("solo", 2).tasks == panel.tasks[:2]
        assert "telecom solo" in panel.version
        assert all("|" not in task.data["task"] for task in every_task(easy))
        assert 0 < len(every_task(easy)) < TRAIN + TEST
        assert len(every_task(small)) == SMALL
        assert {task.kind for task in every_task(small)} == {"mms_issue"}
        with pytest.raises(CoevoError, match="has the panel solo, not 'with-user'"):
            env.panel("with-user", 1)
        with pytest.raises(CoevoError, match=r"panel solo has 6 tasks, not 7: set evaluation\.tasks=6"):
            env.panel("solo", 7)


def test_the_version_changes_with_the_files(tmp_path):
    versions = []
    for number, changed in enumerate(({}, {}, {"main_policy_solo.md": "Be strict."}, {"user_db.toml": "restarts = 1"})):
        (tmp_path / str(number)).mkdir()
        env = make(Tau2Config(path=str(checkout(tmp_path / str(number), **changed))))
        versions.append(env.version)
    assert versions[0] == versions[1]
    assert len(set(versions)) == 3


@contextmanager
def served(opened, *turns, domain="telecom", errors=10, **user):
    with completions(Customer(*turns)) as (url, asked):
        config = {"url": url, "model": "customer", **user}
        with opened(domain=domain, errors=errors, user=UserModelConfig(**config)) as env:
            yield env, asked


def test_a_model_plays_the_user_with_the_tools_of_its_device(opened, monkeypatch):
    monkeypatch.setenv("A_USER_KEY", "s3cret")
    turns = ("my line is closed", ("restart", {}), "it is on again", "thanks ###STOP###")
    with served(opened, *turns, key="A_USER_KEY") as (env, asked):
        task = next(task for task in env.panel("with-user", TEST).tasks if task.data["task"].endswith("|restart"))
        assert "Line" not in task.instruction
        assert [tool["name"] for tool in env.guide(task).tools] == ["open_line", "show_line", "calculate", "respond"]
        state, observation = env.start(task)
        assert observation == "my line is closed"
        number = asked[0].body["messages"][0]["content"].split("your line ")[1].split()[0]
        step = one(env, state, call("open_line", number=number))
        step = one(env, step.state, call("respond", message="please restart the device"))
        assert (step.observation, step.done) == ("it is on again", False)
        ended = one(env, step.state, call("respond", message="anything else?"))
        assert (ended.reward, ended.success, ended.done) == (1.0, True, True)
        assert ended.scores == (("env_assertion", 1.0), ("user_calls", 4.0), ("user_tokens", 40.0))
        # It read its rules and its scenario, what the agent said, and what its own tools returned; nothing else.
        roles = [message["role"] for message in asked[-1].body["messages"]]
        assert roles == ["system", "user", "assistant", "user", "assistant", "tool", "assistant", "user"]
        assert asked[-1].body["messages"][0]["content"].startswith("You play a customer with a device.\n\n<scenario>")
        assert [each["function"]["name"] for each in asked[-1].body["tools"]] == ["restart", "show_device"]
        assert {request.headers["authorization"] for request in asked} == {"Bearer s3cret"}
        assert len({request.body["seed"] for request in asked}) == len(asked)


def test_retail_needs_a_user_and_is_judged_by_records_calls_and_words(opened):
    with served(opened, "hello", "###TRANSFER###", domain="retail") as (env, asked):
        task = env.sample(1, key(0))[0]
        state, _ = env.start(task)
        assert "tools" not in asked[0].body
        silent = one(env, one(env, state, call("open_line", number="a")).state, call("respond", message="well"))
        assert dict(silent.scores) | {"user_calls": 2.0} == dict(silent.scores)
        assert (silent.reward, dict(silent.scores)["db"], dict(silent.scores)["communicate"]) == (0.0, 1.0, 0.0)
        assert "the customer was not told all that the task needs" in silent.feedback
        state, _ = env.start(task)
        told = one(env, one(env, state, call("open_line", number="a")).state, call("respond", message="it is open"))
        assert told.reward == 1.0
        with pytest.raises(MissingPartError, match="solo play alone"):
            env.advise(state, None, key())


def test_requests_to_the_user_are_bounded_and_an_episode_beyond_them_is_cut(opened):
    with served(opened, "hello", "and then?", calls=3) as (env, asked):
        state, _ = env.start(env.sample(1, key(0))[0])
        for _ in range(2):
            step = one(env, state, call("respond", message="yes"))
            state = step.state
        assert step.done is False
        cut = one(env, state, call("respond", message="yes"))
        assert (cut.done, cut.truncated, cut.reward, cut.scores[0]) == (True, True, 0.0, ("user_calls", 3.0))
        assert len(asked) == 3
    with served(opened, "hello", refused("busy", 503), calls=3, retries=9, seconds=3.0) as (env, asked):
        (lost,) = env.try_step([env.start(env.sample(1, key(0))[0])[0]], [call("respond", message="yes")])
        assert isinstance(lost, EpisodeFailure)
        assert len(asked) == 3


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        (refused("no", 401), "does not reply (state 401): start it, or correct url, key or model"),
        (said(""), "replied with an empty message"),
        (Answer(b"<html>"), "is no chat completion"),
        (Answer(b'{"choices": []}'), "is no chat completion (choices"),
        (said(None, tool_calls=[{"id": 1}]), "is no chat completion"),
        (HANGS, "does not reply (TimeoutError"),
    ],
)
def test_a_user_that_fails_loses_the_episode_which_is_not_the_agents_failure(opened, turn, says):
    with served(opened, "hello", turn, seconds=3.0, retries=0) as (env, _):
        (lost,) = env.try_step([env.start(env.sample(1, key(0))[0])[0]], [call("respond", message="yes")])
        assert isinstance(lost, EpisodeFailure)
        assert says in lost.detail


def test_a_user_that_calls_no_tool_of_its_own_reads_why(opened):
    turns = ("hello", ("open_line", {"number": "n1"}), ("restart", []), "sorry", "###STOP###")
    with served(opened, *turns) as (env, asked):
        step = one(env, env.start(env.sample(1, key(0))[0])[0], call("respond", message="yes"))
        assert step.observation == "sorry"
        results = [each["content"] for each in asked[-1].body["messages"] if each["role"] == "tool"]
        assert results[0].startswith("Error: ")
        assert results[1] == "the device is on"


@pytest.mark.parametrize("count", RANDOM_ACTIONS)
def test_random_actions_with_a_user_never_raise_out_of_a_step(opened, count):
    with served(opened, "hello", "go on", errors=10_000, calls=10_000) as (env, _):
        assert failures(env, count // 10, CALLS, side_by_side=6) == []


def test_the_panel_says_how_it_was_played(opened, bench):
    from coevo.configs.load.load import load_recipe

    asked = load_recipe("homerules-react", [f"env={{type: tau2, path: '{bench}'}}", "evaluation.panels=[]"])
    assert with_panel(asked).evaluation.panels == ("solo",)
    user = "user: {url: 'http://127.0.0.1:1/v1', model: m}"
    asked = load_recipe("homerules-react", [f"env={{type: tau2, path: '{bench}', {user}}}", "evaluation.panels=[]"])
    assert with_panel(asked).evaluation.panels == ("with-user",)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"path": "/no/such"}, "/no/such is no checkout of tau2-bench: git clone .*set TAU2_BENCH_DIR"),
        ({"path": None}, "there is no checkout of tau2-bench"),
        ({"faults": 1, "tasks": "small"}, r"env\.faults=1: no task of held-out is so easy: raise it"),
        ({"user": UserModelConfig(url="http://127.0.0.1:1", model="m", key="NO_KEY")}, r"env\.user\.key.*NO_KEY: set"),
    ],
)
def test_what_is_missing_is_one_line(bench, monkeypatch, settings, says):
    monkeypatch.delenv("TAU2_BENCH_DIR", raising=False)
    monkeypatch.delenv("NO_KEY", raising=False)
    config = Tau2Config(**{"path": str(bench), **settings})
    with pytest.raises(CoevoError, match=says) as caught:
        make(config).workers  # noqa: B018
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("tasks.json", "[{}]", r"tasks\.json: 0\.id: Field required"),
        ("tasks.json", "[" * 10**5, r"tasks\.json: it: Invalid JSON"),
        ("tasks.json", '[{"id": "x"}]', r"tasks\.json does not fit it"),
        ("split_tasks.json", '{"train": ["x"]}', "it has no split 'test'"),
        ("split_tasks.json", '{"train": ["x"], "test": ["x"]}', "does not fit it"),
        ("db.toml", "= 3", r"db\.toml: it is no database"),
    ],
)
def test_a_file_of_another_form_is_one_line(tmp_path, name, text, says):
    with pytest.raises(CoevoError, match=says) as caught:
        make(Tau2Config(path=str(checkout(tmp_path, **{name: text}))))
    assert "\n" not in str(caught.value)


def test_code_and_files_that_do_not_fit_are_refused(bench, opened):
    with opened() as env:
        (bench / "data" / "tau2" / "domains" / "telecom" / "main_policy_solo.md").write_text("changed since")
        with pytest.raises(CoevoError, match="gives another policy than its files"):
            env.guide(env.sample(1, key(0))[0])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"domain": "retail"}, r"domain=retail has no solo play: set user\.url and user\.model, or domain=telecom"),
        (
            {"domain": "airline", "tasks": "small", "user": UserModelConfig(url="http://a:1", model="m")},
            "tasks, policy and faults are telecom's",
        ),
        (
            {"user": UserModelConfig(url="http://a:1", model="m", seconds=30.0, retries=2)},
            "allow 90 s for one request, more than simulator.act_seconds=60: raise that, or lower them",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        Tau2Config(**settings)
