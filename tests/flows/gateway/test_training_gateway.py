"""A run that learns from its gateway: agents ask over a socket, and an iteration gets what they were told, once."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from urllib.error import HTTPError

import numpy as np
import pyarrow.parquet as pq
import pytest
from openai import APIError
from support import sessions
from support.chat_model import small_model
from support.gateway import LOST, WON, Agent, commanded
from support.runs import coevo
from support.worker import environment

from coevo.configs.load.load import load_recipe
from coevo.flows.gateway.run_gateway import GatewaySettings, training_gateway
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.models.trainer.samples import write_turns
from coevo.records.draws import key
from coevo.tasks.gateway.session_store import FILES, read_sessions
from coevo.tasks.revision_artifacts import episodes_of
from coevo.tasks.steps.policy_steps import gate_episodes
from coevo.utilities.errors import CoevoError

TASKS = environment().sample(4, key(3, "agents"))


@contextmanager
def training(root, *settings, recipe="homerules-grpo", **source):
    source = {"outcomes": 4, **source}
    config = load_recipe(recipe, ["warmstart=null", f"rollout.gateway={json.dumps(source)}", *settings])
    with (
        ThreadPoolExecutor(16) as threads,
        sessions.opened(root, config) as session,
        training_gateway(session, GatewaySettings()) as served,
    ):
        yield session, Agent(served), threads


def collected(session):
    """The episodes of an iteration, which the gate lets pass, and its metrics; it is committed."""
    _, episodes = sessions.played(session)
    gate_episodes(session, episodes)
    metrics = dict(session.pending.metrics)
    session.iteration += 1
    sessions.committed(session)
    return episodes, metrics


def tokens(episodes):
    return sorted((list(turn.prompt_ids), list(turn.completion.token_ids)) for each in episodes for turn in each.turns)


def told(agent, names):
    return sorted((list(prompt), list(ids)) for name in names for prompt, ids in agent.told[name])


def test_the_update_gets_the_tokens_that_agents_were_told(tmp_path):
    with training(tmp_path) as (session, agent, threads):
        names = [f"s{number}" for number in range(4)]
        played = [
            threads.submit(agent.play, name, outcome=WON if number % 2 else LOST, turns=1 + number)
            for number, name in enumerate(names)
        ]
        threads.submit(agent.ask, "several", n=3)
        threads.submit(agent.play, "exam", mode="evaluation")
        episodes, metrics = collected(session)
        assert [each.result()[0] for each in played] == ["run@0"] * 4
        write_turns(tmp_path / "batch.parquet", episodes)
        rows = pq.read_table(tmp_path / "batch.parquet").to_pylist()
        assert sorted((row["prompt_ids"], row["token_ids"]) for row in rows) == told(agent, names)
        stored = {each.session: each for each in read_sessions(tmp_path / "gateway/sessions/run" / FILES["training"])}
        drawn = [turn.logprobs for name in names for turn in stored[name].turns]
        assert sorted(tuple(row["logprobs"]) for row in rows) == sorted(tuple(np.float32(each)) for each in drawn)
        assert all(turn.seconds > 0 for each in episodes for turn in each.turns)
        assert len({each.task.id for each in episodes}) == 1
        assert [each.replica for each in episodes] == [0, 1, 2, 3]
        assert metrics["agent/sessions/used"] == 4
        assert metrics["agent/success/train"] == 0.5
        assert "exam" not in stored


def test_requests_wait_while_the_run_learns_and_a_session_in_flight_is_stale(tmp_path):
    with training(tmp_path) as (session, agent, threads):
        asked = threads.submit(agent.ask, "flight")
        threads.submit(lambda: (asked.result(), [agent.play(f"s{number}") for number in range(4)]))
        collected(session)
        waiting = threads.submit(agent.ask, "flight")
        assert agent.post("/s/idle", {})["session"] == "idle"  # what needs no policy is answered
        assert not waiting.done()

        def play():
            waiting.result()
            agent.post("/s/flight/outcome", WON)
            return [agent.play(f"t{number}") for number in range(4)]

        played = threads.submit(play)
        episodes, metrics = collected(session)
        assert waiting.result() == "run@1"
        assert played.result() == [["run@1"] * 2] * 4
        assert {turn.version for each in episodes for turn in each.turns} == {1}
        assert (metrics["agent/sessions/stale"], metrics["agent/sessions/used"]) == (1, 4)


def test_a_bound_of_staleness_lets_sessions_continue_with_the_next_policy(tmp_path):
    with training(tmp_path, "update.loss.importance_cap=2.0", staleness=1) as (session, agent, threads):
        agent.post("/s/flight", {"group": "g"})
        asked = threads.submit(agent.ask, "flight", "before")
        threads.submit(lambda: (asked.result(), [agent.play(f"s{number}") for number in range(4)]))
        collected(session)

        def play():
            agent.ask("flight", "after")
            agent.post("/s/flight/outcome", WON)
            return [agent.play(f"t{number}") for number in range(3)]

        threads.submit(play)
        episodes, metrics = collected(session)
        assert [[turn.version for turn in each.turns] for each in episodes] == [[0, 1], [1, 1], [1, 1], [1, 1]]
        assert metrics["policy/staleness"] == 1 / 8
        assert tokens(episodes) == told(agent, ["flight", "t0", "t1", "t2"])


def test_another_revision_is_refused_never_served(tmp_path):
    with training(tmp_path) as (session, agent, threads):

        def refusals():
            found = []
            for model in ("run@1", "other@0"):
                with pytest.raises(APIError, match="this server serves run@0, and no other revision"):
                    agent.ask("asks", model=model)
                found.append(model)
            assert agent.ask("asks", model="run@0") == "run@0"
            for number in range(4):
                agent.play(f"s{number}")
            return found

        asked = threads.submit(refusals)
        collected(session)
        assert len(asked.result()) == 2


def test_an_outcome_is_used_once_whatever_dies(tmp_path):
    with training(tmp_path) as (session, agent, threads):
        for number in range(4):
            threads.submit(agent.play, f"s{number}")
        _, first = sessions.played(session)  # and dies before its commit
        names = [f"s{number}" for number in range(4)]
        assert tokens(first) == told(agent, names)
    with training(tmp_path) as (session, agent, threads):
        again, _ = collected(session)  # nobody plays: they are on the disk
        assert again == first
        for number in range(4, 8):
            threads.submit(agent.play, f"s{number}")
        later, _ = collected(session)
        assert tokens(later) == told(agent, [f"s{number}" for number in range(4, 8)])
    with training(tmp_path) as (session, agent, threads):
        for number in range(8, 12):
            threads.submit(agent.play, f"s{number}")
        assert tokens(collected(session)[0]) == told(agent, [f"s{number}" for number in range(8, 12)])


def test_an_iteration_closes_with_fewer_once_an_outcome_has_waited_and_stays_so(tmp_path):
    with training(tmp_path, max_wait=0.02) as (session, agent, threads):
        threads.submit(lambda: [agent.play(f"s{number}") for number in range(2)])
        _, first = sessions.played(session)
        assert 2 <= len(first) < 4
        agent.post("/s/other", {"group": "g"})
    with training(tmp_path, max_wait=1000.0) as (session, _, _):
        assert sessions.played(session)[1] == first


def test_sessions_of_the_environments_tasks_reach_the_bank(tmp_path):
    with training(tmp_path, "bank.every=1", recipe="homerules-coevo-rl") as (session, agent, threads):

        def play(name, task, outcome):
            about = {"kind": task.kind, "instruction": task.instruction, "scope": task.scope, "data": dict(task.data)}
            seen = f"{task.scope} {task.instruction.split()[-3]} in safe"
            steps = [{"turn": 0, "observation": "at hall", "action": "go safe", "feedback": seen}]
            agent.play(name, name[0], {**outcome, "steps": steps}, turns=1, task=about)

        threads.submit(play, "a1", TASKS[0], WON)
        threads.submit(play, "a2", TASKS[0], LOST)
        threads.submit(play, "b1", TASKS[1], WON)
        threads.submit(play, "b2", TASKS[1], LOST)
        threads.submit(agent.play, "c1", "c")  # a task that nobody can replay
        episodes = sessions.batch(session)
        assert {each.task.id for each in episodes} == {task.id for task in TASKS[:2]}
        sessions.shaped(session, episodes)
        proposal = sessions.do(session, sessions.write)
        assert {entry.scope for entry in proposal.entries} <= {task.scope for task in TASKS[:2]}
        assert proposal.entries


REFUSED = {
    "rollout.ahead=1": "leaves that to agents",
    "rollout.turns=2": "rollout",
    "lineage.every=2": "set lineage.every=1",
    "rollout.gateway.staleness=1": "importance_cap",
    "rollout.gateway.outcomes=1": "set it to 2 or more",
}


@pytest.mark.parametrize("setting", REFUSED)
def test_settings_that_do_not_go_with_agents_are_refused_in_one_line(setting):
    more = ["update.loss.importance_cap=2.0"] if "ahead" in setting else []
    with pytest.raises(CoevoError, match=REFUSED[setting]):
        load_recipe("homerules-grpo", ["rollout.gateway={outcomes: 4}", setting, *more])


def test_the_gateway_ends_with_the_run(tmp_path):
    with training(tmp_path) as (_, agent, threads):
        waiting = threads.submit(agent.ask, "late")
        agent.post("/s/open", {})
    with pytest.raises(APIError):  # its request waits, or comes too late to be read
        waiting.result()
    with pytest.raises((HTTPError, OSError)):
        agent.post("/s/open", {})


RUN = (
    "run", "homerules-grpo", "--name", "agents", "iterations=3", "seed=5", "warmstart=null", "evaluation.every=1000",
    "evaluation.tasks=4", "evaluation.final_panels=[]", "rollout.gateway={outcomes: 8}",
)  # fmt: skip


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("no_servers_named")
def test_a_killed_run_learns_from_each_outcome_that_was_answered_once(tmp_path):
    def group(agent, name):
        names = [f"{name}{number}" for number in range(4)]
        return [agent.play(each, name, WON if number else LOST) for number, each in enumerate(names)]

    with commanded(tmp_path, *RUN) as (process, agent):
        assert group(agent, "a") + group(agent, "b") == [["agents@0"] * 2] * 8
        assert group(agent, "c") == [["agents@1"] * 2] * 4
        assert agent.ask("flight") == "agents@1"
        os.kill(process.pid, signal.SIGKILL)
        before = agent.told
    with commanded(tmp_path, "gateway", "agents", "--train") as (process, agent):
        assert group(agent, "d") == [["agents@1"] * 2] * 4
        assert group(agent, "e") + group(agent, "f") == [["agents@2"] * 2] * 8
        process.communicate()
        assert process.returncode == 0
    coevo("down", workspace=tmp_path)
    place = Workspace(tmp_path)
    with Lineage.open(place.existing("agents").lineage, place.cache) as lineage:
        history = lineage.history.log()
        learned = [tokens(episodes_of(lineage, each, tmp_path / "scratch")) for each in range(1, 4)]
    agent.told |= before
    for groups, found in zip(("ab", "cd", "ef"), learned, strict=True):
        assert found == told(agent, [f"{name}{number}" for name in groups for number in range(4)])
    assert len(list(chain(*learned))) == 48
    assert [each.metrics.get("agent/sessions/lost", 0) for each in history] == [0, 0, 1, 0]
    assert history[-1].metrics["agent/sessions/used"] == 8


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("no_servers_named")
def test_a_chat_model_learns_from_streams_and_calls_of_its_agents(tmp_path):
    """One iteration of a model with Qwen3's template: the update gets what was drawn, and changes the weights."""
    model = small_model(tmp_path / "model")
    chat = (
        "run", "homerules-grpo", "iterations=1", "warmstart=null", "rollout.gateway={outcomes: 4}",
        f"policy={{type: pretrained, path: '{model}', dtype: float32}}", "rollout.sampling.max_new_tokens=16",
        "evaluation={every: 1, tasks: 2, final_panels: []}", "context.style=chat", "--name", "chat",
    )  # fmt: skip
    tool = {"type": "function", "function": {"name": "go", "parameters": {"type": "object", "properties": {}}}}
    drawn = []
    with commanded(tmp_path, *chat) as (process, agent):
        for number in range(4):
            name = f"s{number}"
            agent.post(f"/s/{name}", {"group": "g"})
            agent.ask(name, "house lotus . turn 0", tools=[tool])
            drawn += [agent.told[name][0][1], agent.hear(name, "house lotus . turn 1", tools=[tool])]
            agent.post(f"/s/{name}/outcome", WON if number % 2 else LOST)
        process.communicate()
        assert process.returncode == 0
    coevo("down", workspace=tmp_path)
    place = Workspace(tmp_path)
    with Lineage.open(place.existing("chat").lineage, place.cache) as lineage:
        learned = [ids for _, ids in tokens(episodes_of(lineage, 1, tmp_path / "scratch"))]
        last = lineage.history.log()[-1]
    assert sorted(learned) == sorted(drawn)
    assert last.metrics["agent/sessions/used"] == 4
    assert last.metrics["policy/update/grad_norm"] > 0
