"""tau2 on the authors' files of telecom, and on a checkout of theirs.

``TAU2_BENCH_DIR`` names their checkout, ``TAU2_BENCH_PYTHON`` an interpreter with its packages.
"""

import hashlib
import json
import os
import tomllib
from contextlib import closing
from pathlib import Path

import pytest
from support.adapted import RANDOM_ACTIONS, call, failures, one
from support.bench_checkout import DONE, Customer, every_task, solved
from support.completions import completions

from coevo.configs.benchmark_config import Tau2Config, UserModelConfig
from coevo.envs.registry import make
from coevo.envs.tau2.service_domain import read_domain
from coevo.records.draws import key
from coevo.tasks.checks.environment_check import check_environment

TELECOM = Path(os.environ.get("TAU2_TELECOM_DIR") or Path(__file__).parents[4] / "shared" / "data" / "tau2-telecom")
files = pytest.mark.skipif(not TELECOM.is_dir(), reason="telecom's files are not here: set TAU2_TELECOM_DIR")
CHECKOUT = os.environ.get("TAU2_BENCH_DIR", "")
theirs = pytest.mark.skipif(not CHECKOUT, reason="TAU2_BENCH_DIR names no checkout of tau2-bench")


@pytest.fixture
def telecom(tmp_path):
    """A folder in the form of a checkout, with the authors' files of telecom."""
    domains = tmp_path / "data" / "tau2" / "domains"
    domains.mkdir(parents=True)
    (domains / "telecom").symlink_to(TELECOM)
    return tmp_path


@files
def test_the_authors_twenty_tasks_load_and_policies_and_databases_are_read_unchanged(telecom):
    before = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in TELECOM.iterdir()}
    written = {each["id"]: each for each in json.loads((TELECOM / "tasks_small.json").read_text())}
    env = make(Tau2Config(path=str(telecom), tasks="small"))
    tasks = every_task(env)
    assert {task.data["task"] for task in tasks} == set(written)
    assert len(tasks) == 20
    assert [task.instruction for task in tasks] == [written[task.data["task"]]["ticket"] for task in tasks]
    for task in tasks:
        reference = written[task.data["task"]]["evaluation_criteria"]["actions"]
        calls = [(each.name, each.arguments) for each in env.domain.tasks[task.data["task"]].solution]
        assert calls == [(each["name"], each["arguments"]) for each in reference]
        # Nothing that only an evaluation may know is in the task that a policy plays.
        assert set(task.data) == {"task"}
    texts = {path.name: path.read_text() for path in TELECOM.glob("*.md")}
    manual = {True: "main_policy_solo.md", False: "main_policy.md"}
    for solo, main in manual.items():
        found = read_domain(telecom, "telecom", "small", "manual", solo)
        assert found.policy == (
            f"<main_policy>\n{texts[main]}\n</main_policy>\n"
            f"<tech_support_policy>\n{texts['tech_support_manual.md']}\n</tech_support_policy>"
        )
        assert texts["tech_support_workflow.md"] in read_domain(telecom, "telecom", "small", "workflow", False).policy
    databases = {name: tomllib.loads((TELECOM / name).read_text()) for name in ("db.toml", "user_db.toml")}
    assert env.domain.databases == databases
    assert before == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in TELECOM.iterdir()}


@theirs
def test_all_solo_tasks_of_the_checkout_are_solved_by_their_solutions_and_none_by_an_empty_agent():
    with closing(make(Tau2Config())) as env:
        tasks, panel = every_task(env), env.panel("solo", 40).tasks
        assert len(tasks) == 114
        assert [task.data["task"] for task in tasks if solved(env, task).reward != 1.0] == []
        assert sum(one(env, env.start(task)[0], DONE).success for task in panel) == 0
        state, _ = env.start(tasks[0])
        customer = json.loads(one(env, state, call("get_customer_by_phone", phone_number="555-123-2002")).observation)
        customers = env.domain.databases["db.toml"]["customers"]
        written = next(each for each in customers if each["customer_id"] == customer["customer_id"])
        assert {name: customer[name] for name in ("customer_id", "email", "address")} == {
            name: written[name] for name in ("customer_id", "email", "address")
        }


@theirs
@pytest.mark.parametrize("count", RANDOM_ACTIONS)
def test_random_actions_never_raise_out_of_a_step_of_the_checkout(count):
    with closing(make(Tau2Config(errors=10_000))) as env:
        names = tuple(tool["name"] for tool in env.facts.tools)
        assert failures(env, count, names, side_by_side=20) == []


@theirs
def test_the_check_of_environments_is_clean_on_the_checkout():
    with closing(make(Tau2Config())) as env:
        assert [str(each) for each in check_environment(env, tasks=4) if not each.passed] == []


@theirs
def test_retail_of_the_checkout_is_played_with_a_user():
    with completions(Customer("hello", "###STOP###")) as (url, asked):
        user = UserModelConfig(url=url, model="customer")
        with closing(make(Tau2Config(domain="retail", user=user))) as env:
            tasks = [*env.sample(6, key(0)), *env.panel("with-user", 6).tasks]
            for task in tasks:
                state, observation = env.start(task)
                assert observation == "hello"
                for action in env.domain.tasks[task.data["task"]].solution:
                    state = one(env, state, call(action.name, **action.arguments)).state
                ended = one(env, state, call("respond", message="it is done"))
                assert (ended.reward, ended.done) == (1.0, True), task.data
            assert "<scenario>" in asked[0].body["messages"][0]["content"]
