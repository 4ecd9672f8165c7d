"""A run packaged, promoted and served by `mlflow models serve`: one server for all of it."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError

import psutil
import pytest
from support import small_run
from support.loop import novice
from support.player import CONFIG
from support.runs import ROOT, coevo

from flows.evaluate import Request, evaluate_revision
from flows.package import promote, register_revision
from flows.reference import reading
from flows.serving import evaluate_through
from lineage.workspace import Workspace
from tasks.champion import restore
from tasks.registry import Registered, fetch, find, packaged
from tasks.tracking.store import client, tracking_store

pytestmark = pytest.mark.full
PANEL = "seen-houses"
TASKS = 96
"""So many that the two lessons of the run are asked for."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A workspace with a run whose policy has been shown how to act; revisions 3 and 0 are versions 1 and 2."""
    place = Workspace(tmp_path_factory.mktemp("served"))
    small_run.build(place.root, policy=novice(CONFIG, place.warmstarts))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        assert register_revision("first@3", "agent", place)[0] == Registered("agent", 1)
        assert register_revision("first@0", "agent", place)[0] == Registered("agent", 2)
        assert promote("agent/1", PANEL, 16, 0.0, 0, place).passed
        yield place


@pytest.fixture(scope="module")
def server(place):
    """``coevo serve agent@champion``: its process and its URL. It ends with its child when it is told to."""
    start = "from flows.cli import main; main()"
    command = [sys.executable, "-c", start, "serve", "agent@champion", "--workspace", str(place.root)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = process.stdout.readline()
    found = re.search(r"agent/1 answers at (http://\S+)/invocations", said)
    assert found, said + process.stderr.read()
    yield process, found[1]
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    assert psutil.wait_procs(children, timeout=10)[1] == []


def ask(url, rows, **more):
    body = json.dumps({"dataframe_records": rows, **more}).encode()
    request = urllib.request.Request(f"{url}/invocations", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)["predictions"]


def said(episodes):
    return [[(turn.completion.text, turn.action, turn.retrieved) for turn in each.turns] for each in episodes]


def test_a_panel_through_the_endpoint_ends_as_it_does_here(server, place):
    here = evaluate_revision("first@3", Request(PANEL, TASKS), place)
    there = evaluate_through(server[1], "first@3", Request(PANEL, TASKS), place)
    assert said(there.episodes) == said(here.episodes)
    assert there.success == here.success
    assert 0 < there.success < 1
    assert there.panel.hash == here.panel.hash
    assert any(turn.retrieved for episode in there.episodes for turn in episode.turns)


def test_the_command_plays_through_it(server, place):
    told = ("evaluate", "first", "--tasks", "8", "--json")
    rows = [coevo(*told, *more, workspace=place.root) for more in ((), ("--through", server[1]))]
    assert json.loads(rows[0].stdout) == json.loads(rows[1].stdout), rows[1].stderr


def test_it_is_stateless_and_takes_requests_side_by_side(server, place):
    _, url = server
    first = {"instruction": "house lotus . task heat mug to counter", "observation": "at hall hold nothing"}
    later = {
        **first,
        "scope": "lotus",
        "history": [{"observation": "at hall", "action": "go safe", "feedback": "see mug"}],
        "task": "t",
    }
    alone = [ask(url, [row])[0] for row in (first, later)]
    assert set(alone[0]) == {"text", "thought", "action", "retrieved"}
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda row: ask(url, [row])[0], [first, later] * 4)) == alone * 4
    assert ask(url, [{**first, "scope": "", "history": [], "task": first["instruction"]}, later]) == alone
    seeds = [ask(url, [later], params={"seed": seed})[0]["text"] for seed in range(8)]
    assert len(set(seeds)) > 1


def test_a_bad_request_is_refused_and_said_why(server):
    for row, reason in (
        ({"observation": "at hall"}, "instruction"),
        ({"instruction": "mug " * 5000, "observation": "at hall"}, "the policy attends to"),
    ):
        with pytest.raises(HTTPError) as refused:
            ask(server[1], [row])
        assert refused.value.code == 400
        assert reason in refused.value.read().decode()


def test_it_listens_on_loopback_alone(server):
    process, url = server
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    heard = {each.laddr for one in family for each in one.net_connections() if each.status == psutil.CONN_LISTEN}
    assert {(address.ip, address.port) for address in heard} == {("127.0.0.1", int(url.rpartition(":")[2]))}


def test_a_version_says_where_it_comes_from_and_how_it_did(place):
    version = client(tracking_store(place.root)).get_model_version("agent", "1")
    with reading("first@3", place) as opened:
        state, commit = opened.manifest.state, opened.lineage.commit_hash(3)
    assert version.tags["coevo.run"] == "first"
    assert version.tags["coevo.commit"] == commit
    assert version.tags["coevo.config"] == state["config_hash"]
    assert version.tags[f"coevo.success.{PANEL}"] == f"{state['metrics'][f'success/{PANEL}']:.4f}"


def test_the_alias_moves_through_the_gate_and_back_to_the_old_pair(place, tmp_path):
    store = tracking_store(place.root)
    refused = promote("agent/2", PANEL, 32, 1.0, 0, place)
    assert not refused.passed
    assert find(store, "agent@champion") == Registered("agent", 1)
    passed = promote("agent/2", PANEL, 32, -1.0, 0, place)
    assert passed.verdict.low > -1.0
    assert find(store, "agent@champion") == Registered("agent", 2)
    assert packaged(fetch(store, find(store, "agent@champion"), tmp_path / "new")).origin.revision == 0
    assert restore(store, "agent") == Registered("agent", 1)
    old = packaged(fetch(store, find(store, "agent@champion"), tmp_path / "old"))
    assert old.origin.revision == 3
    with reading("first@3", place) as opened:
        policy = opened.lineage.materialise(3, "policy", tmp_path / "policy")
    weights = [(directory / "model.safetensors").read_bytes() for directory in (policy, old.directory / "policy")]
    assert weights[0] == weights[1]


ALONE = """
import json, sys
import mlflow.pyfunc, pandas as pd
model = mlflow.pyfunc.load_model(sys.argv[1])
asked = [{"instruction": "house lotus . task heat mug to counter", "observation": "at hall hold nothing"}]
answer = model.predict(pd.DataFrame(asked), params={"seed": 3})
import tasks
house = {name.split(".")[0] for name in sys.modules}
print(json.dumps([answer, tasks.__path__[0], sorted(house & {"flows", "lineage", "lancedb", "prefect", "dvc"})]))
"""


def test_a_model_plays_with_its_own_code_and_without_the_stores(server, place, tmp_path):
    store = tracking_store(place.root)
    model = fetch(store, Registered("agent", 1), tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(model)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer, home, stores = json.loads(done.stdout.splitlines()[-1])
    asked = [{"instruction": "house lotus . task heat mug to counter", "observation": "at hall hold nothing"}]
    assert answer == ask(server[1], asked, params={"seed": 3})
    assert Path(home) == model / "code" / "tasks"
    assert stores == []
