"""Pages say what the stores hold, keep every text inert, and change nothing without the token."""

import http.client
import json
import re
import shutil
from hashlib import sha256
from urllib.parse import quote, urlsplit

import pytest
from filelock import FileLock
from starlette.testclient import TestClient
from support import asking, small_run
from support.html_page import parsed
from support.scheduled import wait_for
from support.watched import (
    FRESH_TEXT,
    HOSTILE_TEXT,
    LONG_TEXT,
    OWNED,
    TOKEN,
    DrawnRun,
    hostile_run,
    indexed,
    served,
)

from coevo.flows.history.revision_reference import reading
from coevo.flows.history.success import held_out_success, training_success
from coevo.flows.watch.index_build import index_file
from coevo.flows.watch.watch_app import POLICY, WatchSite, watch_app
from coevo.lineage.lock import writer_lock
from coevo.lineage.status import NAME as STATUS
from coevo.lineage.status import record_stage
from coevo.lineage.workspace import Workspace
from coevo.tasks.publish.reporter import NAME, PhaseRecorder, Silent

ORIGIN = "http://127.0.0.1"
STATISTICS = (
    "INFO 11-29 10:00:00 Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 50.0 tokens/s, "
    "Running: 8 reqs, Waiting: {waiting} reqs, GPU KV cache usage: 90.0%, Prefix cache hit rate: 0.0%\n"
)
"""Line of a vLLM server's log."""


def client(workspace, escaping=True):
    return TestClient(watch_app(WatchSite(workspace, TOKEN, escaping)), base_url=ORIGIN, follow_redirects=False)


@pytest.fixture(scope="module")
def tracking_uri(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('tracking') / 'mlflow.db'}"


@pytest.fixture
def first(tmp_path):
    paths = indexed(small_run.build(tmp_path))
    return paths, client(Workspace(tmp_path))


def part(page, name):
    """Text of the element with an id."""
    found = re.search(rf'id="{name}"[^>]*>(.*?)</(?:dd|p|span|strong|blockquote|pre)>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", "", found[1]).split())


def shown(value):
    return "–" if value is None else f"{value:.3f}"


def interval(found):
    return "–" if found is None else f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def test_the_overview_has_the_figures_of_the_manifests(tmp_path):
    run = DrawnRun(tmp_path, 5)
    for _ in range(4):
        run.step()
    indexed(run.paths)
    asked = client(run.workspace)
    with reading("drawn", run.workspace) as opened:
        for manifest in opened.history:
            page = asked.get(f"/runs/drawn?rev={manifest.revision}").text
            assert part(page, "train") == interval(training_success(manifest))
            assert part(page, "held") == interval(held_out_success(manifest))
            assert part(page, "bank-size") == str(int(manifest.metrics["bank/size"]))
        columns = asked.get("/runs/drawn/curve.json").json()["columns"]
        led = [opened.history[number] for number in columns["revision"]]
        assert columns["train"] == [each.metrics["agent/success/train"] for each in led]


def test_bank_lessons_and_episodes_can_be_followed(first):
    _, asked = first
    page = asked.get("/runs/first/bank?rev=3&from=1").text
    assert [part(page, name) for name in ("added", "edited", "retired", "total")] == ["0", "1", "0", "2 entries"]
    assert "was: lotus mug in safe" in page
    assert part(asked.get("/runs/first/bank?rev=3&q=DRAWER%20lotus").text, "total") == "1 entries with “DRAWER lotus”"
    assert part(asked.get("/runs/first/bank?rev=3&q=drawer%20tulip").text, "total").startswith("0 entries")
    card = asked.get(f"/runs/first/lessons/{small_run.MUG.id}?rev=3").text
    assert part(card, "lesson") == "lotus mug in drawer"
    assert (part(card, "shown"), part(card, "solved")) == ("8", "4")
    assert "lotus mug in safe" in card
    failed = asked.get("/runs/first/episodes?rev=2&outcome=failed").text
    assert part(failed, "total") == "2 episodes of 2 tasks, 0 solved"
    address = re.search(r"runs/first/r/2/held-out/\d+", failed)[0]
    episode = asked.get(f"/{address}").text
    assert "not followed" in episode
    assert "lotus mug in safe" in episode
    group = asked.get(f"/runs/first/r/2/tasks/{small_run.TASK.id}").text
    assert group.count("<article>") == 4


def test_an_empty_answer_of_a_view_says_what_is_there_instead(first):
    _, asked = first
    page = asked.get("/runs/first/episodes?rev=0").text
    assert "held-out" in page
    missing = asked.get("/runs/first/lessons/nothing")
    assert missing.status_code == 404
    assert "not in the bank of first" in missing.text
    for path in ("/runs/first/r/2/training/99", "/runs/first/r/2/else/0", "/runs/first/r/2/tasks/none", "/runs/none"):
        assert asked.get(path).status_code == 404, path


def every_page(run, lesson, task, text=HOSTILE_TEXT):
    name, entry, kind = run.paths.name, quote(lesson.id, safe=""), quote(text[:4000], safe="")
    yield from ("/runs", f"/runs/{name}", f"/runs/{name}?rev=0", f"/runs/{name}/revisions")
    yield from (f"/runs/{name}/bank?from=0", f"/runs/{name}/bank?q={kind}&scope={kind}")
    yield from (f"/runs/{name}/lessons/{entry}", f"/runs/{name}/lessons/{kind}", f"/runs/{name}/approval")
    yield from (f"/runs/{name}/candidates?rev=1", f"/runs/{name}/episodes?rev=1&set=training&lesson={entry}")
    yield from (f"/runs/{name}/episodes", f"/runs/{name}/episodes?kind={kind}&reason={kind}&lesson={kind}")
    yield from (f"/runs/{name}/r/1/tasks/{task.id}", f"/runs/{name}/r/1/training/0", f"/runs/{name}/r/1/training/1")
    yield from (f"/runs/{kind[:50]}", f"/runs/{name}/bank?rev={kind}")


ACTING = re.compile(
    r"[\u202a-\u202e\u2066-\u2069\u200b\u2028\u2029\u061c\u200e\u200f\ufeff\u00ad\ufff9-\ufffb\U000e0000-\U000e007f"
    r"\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


@pytest.mark.parametrize("hostile", [HOSTILE_TEXT, FRESH_TEXT, LONG_TEXT], ids=["known", "fresh", "long"])
def test_hostile_text_is_inert_on_every_page(tmp_path, hostile):
    run, lesson, task = hostile_run(tmp_path, hostile)
    indexed(run.paths)
    asked, seen = client(run.workspace), 0
    for path in every_page(run, lesson, task, hostile):
        answer = asked.get(path)
        assert answer.headers["content-security-policy"] == POLICY, path
        assert answer.headers["x-content-type-options"] == "nosniff"
        text = answer.text
        assert not ACTING.search(text), path
        assert len(text) < 1_000_000, path
        elements = list(parsed(text).all())  # every element is closed, so that no text has opened one
        forbidden = {"iframe", "svg", "img", "style", "base", "object", "math", "plaintext", "textarea", "template"}
        assert {each.tag for each in elements} & forbidden == set()
        for each in elements:
            assert not any(name.startswith("on") or name == "style" for name in each.attributes), path
            assert not re.match(r"\s*(javascript|data|vbscript):", each.attributes.get("href") or ""), path
            assert each.tag != "script" or (each.attributes["src"] and not each.children)
        assert "1337" not in text
        seen += "⟨U+202E⟩" in text
    assert seen > 6


def test_without_escaping_the_policy_still_stands(tmp_path):
    run, lesson, task = hostile_run(tmp_path)
    indexed(run.paths)
    asked, acting = client(run.workspace, escaping=False), 0
    for path in every_page(run, lesson, task):
        answer = asked.get(path)
        assert answer.headers["content-security-policy"] == POLICY
        acting += f"<script>{OWNED}" in answer.text
    assert acting > 6
    for word in ("unsafe", "nonce", "data:", "*", "http"):
        assert word not in POLICY
    assert {"script-src 'self'", "style-src 'self'", "require-trusted-types-for 'script'"} <= {*POLICY.split("; ")}


def contents(root):
    return {path: sha256(path.read_bytes()).hexdigest() for path in root.rglob("*") if path.is_file()}


def test_reading_writes_nothing_to_the_run(tmp_path):
    run, lesson, task = hostile_run(tmp_path)
    before = contents(run.paths.root)
    indexed(run.paths)
    asked = client(run.workspace)
    assert asked.get("/runs/hostile").status_code == 200
    for path in every_page(run, lesson, task):
        asked.get(path)
    assert contents(run.paths.root) == before


@pytest.mark.parametrize("harm", [b"", b"no database " * 800])
def test_a_damaged_index_is_built_again_while_pages_are_open(first, harm):
    paths, asked = first
    whole = asked.get("/runs/first/bank").text
    for file in index_file(paths).parent.glob("*.sqlite*"):
        file.unlink()
    index_file(paths).write_bytes(harm)
    wait_for(lambda: asked.get("/runs/first/bank").text == whole)


def test_a_new_revision_is_there_without_a_new_start(tmp_path):
    run = DrawnRun(tmp_path, 1)
    indexed(run.paths)
    asked = client(run.workspace)
    assert "drawn<span" in asked.get("/runs/drawn").text
    run.step()
    wait_for(lambda: "@1<" in asked.get("/runs/drawn").text)


def spoil_created(paths):
    paths.created.write_text("yesterday")


def spoil_config(paths):
    paths.config.write_text("{")


def spoil_lineage(paths):
    shutil.rmtree(paths.lineage / ".git")


def spoil_bank(paths):
    for table in (paths.bank / "verdicts.lance", paths.bank / "operations.lance"):
        shutil.rmtree(table)


@pytest.mark.parametrize("spoil", [spoil_created, spoil_config, spoil_lineage, spoil_bank])
def test_a_damaged_run_says_so_and_shows_what_is_there(first, spoil):
    paths, asked = first
    assert asked.get("/runs/first").status_code == 200
    spoil(paths)
    fresh = client(Workspace(paths.root.parents[1]))
    page = fresh.get("/runs/first").text
    assert part(page, "bank-size") == "2"
    card = fresh.get(f"/runs/first/lessons/{small_run.MUG.id}").text
    assert "lotus mug in drawer" in card
    assert re.search("faulty|damaged or cannot be read|cannot be read: ", page + card)
    assert "first" in fresh.get("/runs").text
    if spoil is spoil_config:
        assert "faulty" in asked.get("/runs/first").text, "by a server that had read it"


def test_runs_without_a_revision_and_from_elsewhere_say_so(tmp_path):
    workspace = Workspace(tmp_path)
    config = small_run.load_recipe(small_run.RECIPE, [])
    workspace.create("empty", config)
    asked = client(workspace)
    answer = asked.get("/runs/empty")
    assert (answer.status_code, "no revision yet" in answer.text) == (503, True)
    small_run.build(tmp_path, "large")
    with FileLock(index_file(workspace.run("large")).with_suffix(".lock")):  # another process builds it
        answer = asked.get("/runs/large")
        assert (answer.status_code, "is being built" in answer.text) == (503, True)
    model = "{type: endpoint, url: 'http://127.0.0.1:1/v1', model: m}"
    paths = indexed(small_run.build(tmp_path, "pulled", [f"bank.writer={{type: model-contrast, model: {model}}}"]))
    assert "comes from elsewhere" not in asked.get(f"/runs/{paths.name}").text
    (tmp_path / "trusted.json").unlink()
    page = asked.get(f"/runs/{paths.name}").text
    assert "no process has run it in this workspace" in page
    assert "comes from elsewhere: bank.writer.model" in page


@pytest.mark.parametrize(
    ("end", "reason", "said"),
    [
        (None, None, "crashed, iteration 4 of 40"),
        ("failed", "no space <b>left</b>", "failed, iteration 4 of 40, no space &lt;b&gt;left&lt;/b&gt;"),
        ("stopped", "interrupted", "stopped, "),
    ],
)
def test_a_run_that_ended_early_says_so_on_each_page_and_shows_what_is_there(first, end, reason, said):
    paths, asked = first
    record_stage(paths, "iteration 4 of 40", 4)
    file = paths.root / STATUS
    file.write_text(json.dumps(json.loads(file.read_text()) | {"end": end, "reason": reason}))
    for path in ("", "/bank", "/episodes?rev=2", "/revisions", "/approval", f"/lessons/{small_run.MUG.id}"):
        answer = asked.get(f"/runs/first{path}")
        assert (answer.status_code, part(answer.text, "status").startswith(said)) == (200, True), path
    assert part(asked.get("/runs/first").text, "bank-size") == "2"


@pytest.fixture
def change(first):
    paths, asked = first

    def changing(path, origin=ORIGIN, **form):
        return asked.post(f"/runs/first/{path}", data=form, headers={"Origin": origin} if origin else {})

    return paths, changing


def test_nothing_changes_without_the_token_or_from_elsewhere(change):
    paths, asked = change
    before, path = contents(paths.root), f"lessons/{small_run.MUG.id}/retire"
    form = {"reason": "misleads", "by": "ann"}
    assert asked(path, **form).status_code == 403
    assert asked(path, token="guess", **form).status_code == 403
    assert asked(path, token="gu\u00e4ss", **form).status_code == 403
    assert asked(path, None, token=TOKEN, **form).status_code == 403
    assert asked(path, "http://example.org", token=TOKEN, **form).status_code == 403
    assert asked("approval", token="guess", vote="yes").status_code == 403
    assert contents(paths.root) == before


def test_a_retirement_with_the_token_is_a_revision(change, tracking_uri, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri)
    paths, asked = change
    path = f"lessons/{small_run.MUG.id}/retire"
    assert asked(path, token=TOKEN, reason="", by="ann").status_code == 409
    said = asked(path, token=TOKEN, reason="misleads", by="ann")
    assert said.status_code == 200, said.text
    assert "first@4: retired" in said.text
    with reading("first", paths.workspace) as opened:
        assert small_run.MUG.id not in [each.id for each in opened.bank().active()]


@pytest.mark.parametrize("vote", ["yes", "no"])
def test_a_decision_with_the_token_is_a_revision(tmp_path, tracking_uri, monkeypatch, vote):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri)
    asking.play(tmp_path)
    indexed(Workspace(tmp_path).existing("run"))
    asked = client(Workspace(tmp_path))
    page = asked.get("/runs/run/approval").text
    assert "waits for approval" in part(page, "proposal")
    assert "waits for approval" in asked.get("/runs/run").text
    form = {"vote": vote, "token": TOKEN, "by": "ann", "revision": "1"}
    said = asked.post("/runs/run/approval", data=form, headers={"Origin": ORIGIN})
    assert said.status_code == 200, said.text
    assert "run@2" in said.text
    again = asked.post("/runs/run/approval", data=form, headers={"Origin": ORIGIN})
    assert again.status_code == 409


@pytest.fixture
def events(tmp_path):
    """A run whose events can be read one after the other, as a page does."""
    paths = indexed(small_run.build(tmp_path))
    with served(Workspace(tmp_path)) as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        connection.request("GET", "/runs/first/live")
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")

        def until(wanted):
            """Read events until one is wanted."""
            while True:
                line = answer.readline().decode()
                if line.startswith("data: ") and wanted(found := json.loads(line[6:])):
                    return found

        yield paths, until
        connection.close()


def test_phases_of_a_running_process_arrive_and_are_gone_with_it(events):
    paths, until = events
    until(lambda said: said["phases"] == [])
    with writer_lock(paths):
        recorder = PhaseRecorder(paths, Silent())
        recorder.note("r4 rollout: 30 of 128 episodes")
        said = until(lambda said: said["phases"])
        assert said["status"].startswith("running")
        assert said["current"] == said["phases"][0]["text"] == "r4 rollout: 30 of 128 episodes"
        recorder.note("r4 update")
        until(lambda said: [each["name"] for each in said["phases"]] == ["r4 rollout", "r4 update"])
        paths.engine.mkdir(exist_ok=True)
        (paths.engine / "server-0.log").write_text(STATISTICS.format(waiting=6))
        until(lambda said: said["engines"] == ["server-0: 8 running, 6 waiting, 50 tokens/s, cache 90 %"])
        with (paths.engine / "server-0.log").open("a") as log:
            log.write(STATISTICS.format(waiting=7))
        until(lambda said: said["engines"] == ["server-0: 8 running, 7 waiting, 50 tokens/s, cache 90 %"])
        page = client(Workspace(paths.workspace.root)).get("/runs/first").text
        assert "<li>server-0: 8 running, 7 waiting, 50 tokens/s, cache 90 %</li>" in page
        recorder.close()
    # As after a kill: the file stays, and without a holder it means nothing.
    assert (paths.root / NAME).is_file()
    until(lambda said: said["phases"] == said["engines"] == [] and not said["status"].startswith("running"))
