"""Clients report what they did, and the run's environment tells the outcome: once, whoever repeats it."""

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from support.gateway import chat_run, listening
from support.worker import environment

from coevo.records.draws import key

TASK = environment().sample(1, key(5, "outcomes"))[0]
ABOUT = {"kind": TASK.kind, "instruction": TASK.instruction, "scope": TASK.scope, "data": dict(TASK.data)}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with listening(chat_run(tmp_path_factory.mktemp("gateway"))) as reached:
        yield reached


def post(gateway, path, body, token=None):
    """Status and document of an answer."""
    headers = {"Authorization": f"Bearer {token or gateway.token}"}
    try:
        with urlopen(Request(f"{gateway.url}{path}", json.dumps(body).encode(), headers), timeout=120) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def answered(gateway, name, **opening):
    """The token of a new session that has an answer."""
    token = post(gateway, f"/s/{name}", {"task": ABOUT, **opening})[1]["token"]
    ask = {"model": "coevo", "messages": [{"role": "user", "content": "house lotus"}]}
    assert post(gateway, f"/s/{name}/v1/chat/completions", ask)[0] == 200
    return token


def late(gateway):
    with urlopen(Request(f"{gateway.url}/status", headers={"Authorization": f"Bearer {gateway.token}"})) as answer:
        return json.load(answer)["sessions"]["late"]


@pytest.mark.parametrize("mode", ["training", "evaluation"])
def test_actions_end_a_session_once(gateway, mode):
    token, path = answered(gateway, mode, mode=mode), f"/s/{mode}/outcome"
    first = post(gateway, path, {"actions": ["look"]}, token)
    assert first == (200, {"session": mode, "end": "outcome", "reward": 0.0, "success": False, "scores": {}})
    kept = gateway.kept(mode)[mode].outcome
    assert (kept.actions, kept.steps[0].action, kept.steps[0].observation != "") == (("look",), "look", True)
    assert post(gateway, path, {"actions": ["look"]}, token) == first
    before = late(gateway)
    refused = [post(gateway, path, {"actions": ["go safe"]}), post(gateway, path, {"reward": 0.0, "success": False})]
    assert [status for status, _ in refused] == [410, 410]
    assert late(gateway) == before  # it ended with an outcome: another one is refused, as one that is reported
    assert gateway.kept(mode)[mode].outcome == kept


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"actions": []}, 422, "actions"),
        ({"actions": "look"}, 422, "actions"),
        ({"actions": [1]}, 422, "actions"),
        ({"actions": ["look"], "reward": 1.0, "success": True}, 422, "reward"),
        ({"actions": ["x" * 70_000]}, 422, "actions"),
        ({"actions": None}, 422, "actions"),
    ],
)
def test_what_is_no_list_of_actions_is_refused_in_one_line_and_the_session_stays(gateway, body, status, says, request):
    name = f"refused-{abs(hash(request.node.name))}"
    answered(gateway, name)
    code, said = post(gateway, f"/s/{name}/outcome", body)
    text = json.dumps(said)
    assert (code, says in text, "\\n" in text) == (status, True, False), text
    assert post(gateway, f"/s/{name}/outcome", {"actions": ["look"]})[0] == 200


def test_a_session_without_an_answer_or_without_a_task_has_no_outcome(gateway):
    post(gateway, "/s/silent", {"task": ABOUT})
    assert "has no answer" in json.dumps(post(gateway, "/s/silent/outcome", {"actions": ["look"]}))
    assert "has no answer" in json.dumps(post(gateway, "/s/nobody/outcome", {"actions": ["look"]}))
    answered(gateway, "anything", task=None)
    status, said = post(gateway, "/s/anything/outcome", {"actions": ["look"]})
    assert (status, "has no data" in json.dumps(said)) == (400, True)
    other = answered(gateway, "other")
    assert post(gateway, "/s/anything/outcome", {"actions": ["look"]}, other)[0] == 401
