"""A run packaged, promoted and served: one server for all of it, and what an attacker sends to it."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from urllib.error import HTTPError

import psutil
import pytest
from support import small_run
from support.endpoint import LARGE, ROW, WRONG, is_one_line, post, rows, streamed
from support.families import connections_of
from support.loop import novice
from support.runs import ROOT, coevo
from support.worker import CONFIG

from coevo.flows.evaluation.evaluate_samples import SampleRequest, evaluate_samples
from coevo.flows.evaluation.evaluation_targets import TargetSettings
from coevo.flows.history.revision_reference import reading
from coevo.flows.packages.make_package import register_revision
from coevo.flows.packages.promotion import PromotionTerms, promote
from coevo.lineage.workspace import Workspace
from coevo.tasks.package.champion import restore
from coevo.tasks.package.model_registry import Registered, fetch, find, packaged
from coevo.tasks.publish.mlflow.tracking_store import client, tracking_store

pytestmark = pytest.mark.full
PANEL = "seen-houses"
TASKS = 96
"""So many that the two lessons of the run are asked for."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory, warmstarts):
    """A workspace with a run whose policy has been shown how to act; revisions 3 and 0 are versions 1 and 2."""
    workspace = Workspace(tmp_path_factory.mktemp("served"))
    small_run.build(workspace.root, policy=novice(CONFIG, warmstarts))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        assert register_revision("first@3", "agent", workspace)[0] == Registered("agent", 1)
        assert register_revision("first@0", "agent", workspace)[0] == Registered("agent", 2)
        assert promote("agent/1", PromotionTerms(PANEL, 16, 0.0), workspace).passed
        yield workspace


@pytest.fixture(scope="module")
def server(workspace):
    """``coevo serve agent@champion``: its process and its URL. It ends with its child on SIGTERM."""
    start = "from coevo.flows.cli.app import main; main()"
    command = [sys.executable, "-c", start, "serve", "agent@champion", "--workspace", str(workspace.root)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = process.stdout.readline()
    found = re.search(r"Serving agent/1 at (http://\S+)/invocations and ", said)
    assert found, said + process.stderr.read()
    yield process, found[1]
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    assert psutil.wait_procs(children, timeout=60)[1] == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_a_server_ends_with_its_command_however_that_ends(workspace, number):
    start = "from coevo.flows.cli.app import main; main()"
    command = [sys.executable, "-c", start, "serve", "agent/1", "--workspace", str(workspace.root)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert "Serving agent/1 at" in process.stdout.readline()
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        process.wait(60)
    assert len(children) == 2  # its guard and the server
    assert psutil.wait_procs(children, timeout=60)[1] == []


def ask(url, rows, **more):
    body = json.dumps({"dataframe_records": rows, **more}).encode()
    request = urllib.request.Request(f"{url}/invocations", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=400) as response:
        return json.load(response)["predictions"]


def said(path):
    """Answers, actions and ids of entries of every turn in a file of results."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    shown = [[(t["answer"], t["action"], [each["id"] for each in t["lessons"]]) for t in row["turns"]] for row in rows]
    return [(row["task"], row["replica"], row["success"], turns) for row, turns in zip(rows, shown, strict=True)]


def test_a_panel_through_the_endpoint_ends_as_it_does_here(server, workspace, tmp_path):
    found = []
    for name, target, env in (("here", "first@3", None), ("there", server[1], "first@3")):
        request = SampleRequest(PANEL, TASKS, samples=2, output=tmp_path / f"{name}.jsonl")
        found.append(evaluate_samples(target, TargetSettings(env), request, workspace))
    assert said(tmp_path / "there.jsonl") == said(tmp_path / "here.jsonl")
    assert found[1]["panel_hash"] == found[0]["panel_hash"]
    assert 0 < found[1]["figures"]["own"]["avg"]["mean"] < 1
    assert any(lessons for *_, turns in said(tmp_path / "there.jsonl") for *_, lessons in turns)


def test_the_command_plays_through_it(server, workspace):
    told = ("--tasks", "8", "--samples", "1", "--json")
    rows = [
        coevo("evaluate", *target, *told, "rollout.max_turns=5", workspace=workspace.root)
        for target in (["first"], [server[1], "--env", "first"])
    ]
    here, there = (json.loads(each.stdout)["figures"]["own"] for each in rows)
    assert {**here, "tokens": None} == there, rows[1].stderr


def test_it_is_stateless_and_takes_requests_side_by_side(server, workspace):
    _, url = server
    first = {"instruction": "house lotus . task heat mug to counter", "observation": "at hall hold nothing"}
    later = {
        **first,
        "scope": "lotus",
        "history": [{"observation": "at hall", "action": "go safe", "feedback": "see mug"}],
        "task": "t",
    }
    alone = [ask(url, [row])[0] for row in (first, later)]
    assert set(alone[0]) == {"text", "thought", "action", "parsed", "fault", "over", "retrieved", "no_lesson"}
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda row: ask(url, [row])[0], [first, later] * 4)) == alone * 4
    assert ask(url, [{**first, "scope": "", "history": [], "task": first["instruction"]}, later]) == alone
    seeds = [ask(url, [later], params={"seed": seed})[0]["text"] for seed in range(8)]
    assert len(set(seeds)) > 1


def test_chats_ask_the_version_that_is_served_and_no_other(server):
    body = {"messages": [{"role": "user", "content": "house lotus . task heat mug to counter {{lessons}}"}]}
    body["task"] = {"scope": "lotus", "instruction": "task heat mug"}
    for model, status in (("agent/1", 200), ("first@3", 200), ("coevo", 200), ("agent/2", 404), ("first@2", 404)):
        said = post(server[1], json.dumps(body | {"model": model}).encode(), path="/v1/chat/completions")
        assert said[0] == status, said
        if status == 200:
            stamp = json.loads(said[1])["coevo"]
            assert (stamp["policy"], stamp["bank"]) == ("first@3", "first@3")
            assert stamp["entries"]


def test_a_bad_request_is_refused_and_said_why(server):
    with pytest.raises(HTTPError) as refused:
        ask(server[1], [{"observation": "at hall"}])
    assert refused.value.code == 422
    assert "instruction" in refused.value.read().decode()


def test_a_prompt_that_is_too_long_ends_its_own_episode(server):
    long = {"instruction": "mug " * 5000, "observation": "at hall"}
    (alone,), (cut, beside) = ask(server[1], [ROW]), ask(server[1], [long, ROW])
    assert cut["over"].startswith("overlong: a prompt of ")
    assert (cut["action"], cut["parsed"], cut["fault"], beside) == ("", False, "overlong", alone)


def test_what_is_no_request_gets_one_line(server):
    for name, body in WRONG.items():
        status, said = post(server[1], body)
        assert (name, status, is_one_line(said)) == (name, 422, True), said[:300]
    for name, body in LARGE.items():
        status, said = post(server[1], body)
        assert (name, status, is_one_line(said)) == (name, 413, True), said[:300]
    for kind in ("text/csv", "application/vnd.apache.parquet", "text/plain", ""):
        assert post(server[1], rows(ROW), {"Content-Type": kind})[0] == 415
    assert post(server[1], b"", path="/docs", method="GET")[0] == 404
    assert post(server[1], b"", method="GET")[0] == 405
    log = server[0].args[-1] + f"/serve-{server[1].rpartition(':')[2]}.log"
    assert "Traceback" not in Path(log).read_text()


def test_mlflows_client_is_understood(server):
    (alone,) = ask(server[1], [ROW])
    split = {"columns": list(ROW), "index": [0, 1], "data": [list(ROW.values())] * 2}
    for body in ({"dataframe_split": split}, {"inputs": [ROW] * 2}, {"instances": [ROW, {**ROW, "history": None}]}):
        status, said = post(server[1], json.dumps(body).encode())
        assert (status, json.loads(said)["predictions"]) == (200, [alone] * 2)
    assert post(server[1], b"", path="/version", method="GET") == (200, version("mlflow").encode())
    assert post(server[1], b"", path="/health", method="GET") == (200, b"\n")


def test_large_bodies_take_little_memory_and_block_nobody(server):
    process, url = server
    child = psutil.Process(process.pid).children(recursive=True)[-1]  # below its guard
    before, peak, waits = child.memory_info().rss, 0, []
    endless = [b" " * 2**16] * 2000
    with ThreadPoolExecutor(6) as pool:
        sent = [pool.submit(post, url, LARGE["20 MB"]) for _ in range(3)]
        sent += [pool.submit(streamed, url, endless) for _ in range(2)]
        while not all(each.done() for each in sent):
            start = time.monotonic()
            assert post(url, b"", path="/ping", method="GET")[0] == 200
            waits.append(time.monotonic() - start)
            peak = max(peak, child.memory_info().rss)
    assert [each.result()[0] for each in sent[:3]] == [413] * 3
    assert all(b" 413 " in each.result() for each in sent[3:])
    assert peak - before < 200 * 2**20
    assert max(waits) < 5
    assert len(ask(url, [ROW])) == 1


def test_a_foreign_host_or_origin_is_refused(server):
    url = server[1]
    own = url.removeprefix("http://")
    port = own.rpartition(":")[2]
    for host in (own, f"localhost:{port}", f"[::1]:{port}", "LOCALHOST"):
        assert post(url, rows(ROW), {"Host": host})[0] == 200
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "192.0.2.1", "[", ""):
        status, said = post(url, rows(ROW), {"Host": host})
        assert (host, status, is_one_line(said)) == (host, 403, True)
    assert post(url, rows(ROW), {"Origin": url})[0] == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", ""):
        assert post(url, rows(ROW), {"Origin": origin})[0] == 403
    assert post(url, b"", {"Host": "evil.example"}, path="/ping", method="GET")[0] == 403


def test_it_listens_on_loopback_alone(server):
    process, url = server
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    heard = {each.laddr for each in connections_of(family) if each.status == psutil.CONN_LISTEN}
    assert {(address.ip, address.port) for address in heard} == {("127.0.0.1", int(url.rpartition(":")[2]))}


def test_a_version_says_where_it_comes_from_and_how_it_did(workspace):
    registered = client(tracking_store(workspace.root)).get_model_version("agent", "1")
    with reading("first@3", workspace) as opened:
        state, commit = opened.manifest.state, opened.lineage.history.commit_hash(3)
    assert registered.tags["coevo.run"] == "first"
    assert registered.tags["coevo.commit"] == commit
    assert registered.tags["coevo.config"] == state["config_hash"]
    assert registered.tags[f"coevo.success.{PANEL}"] == f"{state['metrics'][f'agent/success/{PANEL}']:.4f}"


def test_the_alias_moves_through_the_gate_and_back_to_the_old_pair(workspace, tmp_path):
    store = tracking_store(workspace.root)
    refused = promote("agent/2", PromotionTerms(PANEL, 32, 1.0), workspace)
    assert not refused.passed
    assert find(store, "agent@champion") == Registered("agent", 1)
    passed = promote("agent/2", PromotionTerms(PANEL, 32, -1.0), workspace)
    assert passed.verdict.low > -1.0
    assert find(store, "agent@champion") == Registered("agent", 2)
    assert packaged(fetch(store, find(store, "agent@champion"), tmp_path / "new")).origin.revision == 0
    assert restore(store, "agent") == Registered("agent", 1)
    old = packaged(fetch(store, find(store, "agent@champion"), tmp_path / "old"))
    assert old.origin.revision == 3
    with reading("first@3", workspace) as opened:
        policy = opened.lineage.artifacts.materialise(3, "policy", tmp_path / "policy")
    weights = [(directory / "model.safetensors").read_bytes() for directory in (policy, old.directory / "policy")]
    assert weights[0] == weights[1]


ALONE = """
import json, sys
import mlflow.pyfunc, pandas as pd
model = mlflow.pyfunc.load_model(sys.argv[1])
asked = [{"instruction": "house lotus . task heat mug to counter", "observation": "at hall hold nothing"}]
answer = model.predict(pd.DataFrame(asked), params={"seed": 3})
import coevo.tasks
stores = {"coevo.flows", "coevo.lineage", "lancedb", "prefect", "dvc"}
print(json.dumps([answer, coevo.tasks.__path__[0], sorted(sys.modules.keys() & stores)]))
"""


def test_a_model_plays_with_its_own_code_and_without_the_stores(server, workspace, tmp_path):
    store = tracking_store(workspace.root)
    model = fetch(store, Registered("agent", 1), tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(model)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer, home, stores = json.loads(done.stdout.splitlines()[-1])
    asked = [{"instruction": "house lotus . task heat mug to counter", "observation": "at hall hold nothing"}]
    assert answer == ask(server[1], asked, params={"seed": 3})
    assert Path(home) == model / "code" / "coevo" / "tasks"
    assert stores == []
