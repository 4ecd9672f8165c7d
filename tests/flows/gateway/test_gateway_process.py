"""A gateway in a process of its own: real clients, kills at any moment, a second gateway, and Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from openai import APIStatusError
from support.gateway import chat_run, running
from support.runs import ROOT

from coevo.configs.rollout.rollout_config import DEFAULT_PYTHON

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
ASK = [{"role": "user", "content": "house lotus . task heat mug to counter"}]
OUTCOME = {"reward": 1.0, "success": True}


@pytest.fixture
def workspace(tmp_path):
    return chat_run(tmp_path)


def post(gateway, path, body=None):
    headers = {"Authorization": f"Bearer {gateway.token}"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{gateway.url}{path}", data, headers), timeout=60) as answer:
        return json.load(answer)


def asked(gateway, session):
    return gateway.openai(session).chat.completions.create(model="m", messages=ASK)


def test_a_kill_loses_the_sessions_in_flight_and_nothing_else(workspace):
    with running(workspace) as (gateway, process):
        for name in ("done", "flight"):
            asked(gateway, name)
        post(gateway, "/s/done/outcome", OUTCOME)
        token = post(gateway, "/s/later", {})["token"]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with running(workspace) as (gateway, _):
        counts = {"open": 0, "outcome": 1, "abandoned": 0, "lost": 2, "late": 0}
        assert post(gateway, "/status")["sessions"] == counts
        assert gateway.kept()["done"].outcome.reward == 1.0
        with pytest.raises(HTTPError, match="410"):
            post(gateway, "/s/flight/outcome", OUTCOME)
        with pytest.raises(APIStatusError, match=r"is over \(lost\)"):
            asked(gateway, "flight")
        assert post(gateway, "/s/other", {})["token"] != token
        asked(gateway, "new")
        assert post(gateway, "/s/new/outcome", OUTCOME)["end"] == "outcome"


def test_every_outcome_that_was_answered_survives_a_kill_at_any_moment(workspace):
    confirmed = set()
    for attempt in range(3):
        with running(workspace) as (gateway, process), ThreadPoolExecutor(8) as clients:

            def play(number, gateway=gateway, attempt=attempt):
                name = f"s{attempt}-{number}"
                try:
                    asked(gateway, name)
                    post(gateway, f"/s/{name}/outcome", OUTCOME)
                except Exception:  # noqa: BLE001  (the gateway was killed meanwhile, in any of many ways)
                    return None
                return name

            played = clients.map(play, range(200))
            time.sleep(2 + attempt)
            os.kill(process.pid, signal.SIGKILL)
            confirmed |= set(played) - {None}
    assert len(confirmed) > 10
    with running(workspace) as (gateway, _):
        kept = gateway.kept()
        counts = post(gateway, "/status")["sessions"]
    assert confirmed <= {name for name, each in kept.items() if each.end == "outcome"}
    assert counts["outcome"] + counts["lost"] == len(kept)
    assert all(each.turns for each in kept.values() if each.end == "outcome")


def test_one_gateway_of_a_run_is_open_and_ctrl_c_ends_it(workspace):
    with running(workspace) as (gateway, process):
        line = [sys.executable, "-P", "-m", "coevo.flows", "gateway", "first", "--workspace", str(workspace)]
        second = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
        assert second.returncode == 2
        assert "another gateway of this run is open" in second.stderr.splitlines()[-1]
        asked(gateway, "kept")
        post(gateway, "/s/kept/outcome", OUTCOME)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        with pytest.raises(URLError):
            post(gateway, "/status")
        assert "kept" in gateway.kept()


CLAUDE = """
import json, sys
from anthropic import Anthropic
url, token = sys.argv[1:]
client = Anthropic(base_url=f"{url}/s/claude", api_key=token, max_retries=0)
schema = {"type": "object", "properties": {"place": {"type": "string"}}}
tools = [{"name": "go", "description": "Go.", "input_schema": schema}]
messages, kept = [{"role": "user", "content": "heat the mug"}], []
for turn in range(6):
    options = dict(model="claude", max_tokens=16, system="Be brief.", messages=messages, tools=tools)
    if turn % 2:
        with client.messages.stream(**options) as stream:
            reply = stream.get_final_message()
    else:
        reply = client.messages.create(**options)
    kept.append([reply.usage.input_tokens, reply.usage.output_tokens])
    messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": f"on {turn}"}]
print(json.dumps(kept))
"""


def test_anthropics_own_client_keeps_its_tokens(workspace):
    python = ROOT / DEFAULT_PYTHON
    if not python.exists() or subprocess.run([python, "-c", "import anthropic"], check=False).returncode:
        pytest.skip("no interpreter with Anthropic's client")
    with running(workspace) as (gateway, _):
        line = [python, "-c", CLAUDE, gateway.url, gateway.token]
        done = subprocess.run(line, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
        assert done.returncode == 0, done.stderr
        post(gateway, "/s/claude/outcome", OUTCOME)
        kept = gateway.kept()["claude"]
    counted = [[len(kept.prompt_ids(number)), len(turn.token_ids)] for number, turn in enumerate(kept.turns)]
    assert json.loads(done.stdout) == counted
    assert [turn.parent for turn in kept.turns] == [None, 0, 1, 2, 3, 4]
    assert Path(gateway.workspace, "gateway", "secret").stat().st_mode & 0o077 == 0
