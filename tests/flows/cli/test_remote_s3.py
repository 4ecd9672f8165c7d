"""``coevo push`` and ``coevo pull`` with S3 as remote: a moto server on loopback."""

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.remotes import advance, content, copy_run
from support.runs import coevo as command
from support.s3_server import BUCKET, KEYS

from coevo.lineage.remote.remote_address import S3Store, to_push
from coevo.lineage.remote.remote_store import Overtaken
from coevo.utilities.errors import CoevoError

pytestmark = pytest.mark.full
REMOTE = f"s3://{BUCKET}/team/coevo"


@pytest.fixture
def nobody(tmp_path, monkeypatch):
    """Keys for a service that is not there."""
    for name, value in {**KEYS, "AWS_CONFIG_FILE": str(tmp_path / "none")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://s3.invalid:1")


@pytest.fixture
def proxy():
    """Address of a proxy that reaches nothing, and what it was asked for."""
    seen = []

    class Proxy(BaseHTTPRequestHandler):
        def handle_one_request(self):
            seen.append(self.rfile.readline())
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self.close_connection = True

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}", seen
        listening.shutdown()
        thread.join()


@pytest.fixture
def source(small_workspace, tmp_path):
    return copy_run(small_workspace, tmp_path / "source")


@pytest.fixture
def call(coevo):
    def run(command, workspace):
        done = coevo(command, REMOTE, "first", "--json", "--workspace", workspace)
        assert (done.code, done.err) == (0, "")
        return json.loads(done.out)[0]

    return run


@pytest.fixture
def refused(coevo):
    def run(command, workspace, remote=REMOTE):
        done = coevo(command, remote, "first", "--workspace", workspace)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"coevo: remote {remote}: ")
        assert done.err.count("\n") == 1
        return done.err

    return run


@pytest.mark.parametrize(
    ("host", "variables"),
    [
        ("127.0.0.1", {}),
        ("localhost", {"no_proxy": "a.example"}),
        ("0.0.0.0", {"NO_PROXY": "a.example"}),
        ("[::ffff:127.0.0.1]", {}),
        (socket.gethostname(), {"NO_PROXY": socket.gethostname()}),
        ("127.0.0.1", {"no_proxy": "a.example", "NO_PROXY": "127.0.0.0/8"}),
        ("127.0.0.1", {"all_proxy": "socks5://h:1"}),
        ("127.0.0.1", {"https_proxy": "http://[::1"}),
    ],
)
def test_a_service_of_this_machine_is_not_asked_through_a_proxy(s3, proxy, monkeypatch, host, variables):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")  # so that it is restored
    proxied, seen = proxy
    for name, value in {"HTTP_PROXY": proxied, "http_proxy": proxied, **variables}.items():
        monkeypatch.setenv(name, value)
    try:
        socket.create_connection((host.strip("[]"), int(s3.url.rpartition(":")[2])), 5).close()
    except OSError:
        pytest.skip("the name does not lead to the loopback here")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url.replace("127.0.0.1", host))
    assert to_push(REMOTE).names() == ["coevo.json"]
    assert seen == []


@pytest.mark.parametrize("spelling", ["no_proxy", "NO_PROXY"])
@pytest.mark.parametrize("entry", ["s3.invalid", ".invalid", "*.invalid", "*", "s3.invalid:1"])
def test_the_users_exceptions_hold_for_s3(nobody, proxy, monkeypatch, spelling, entry):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "a.example")
    proxied, seen = proxy
    monkeypatch.setenv("http_proxy", proxied)
    monkeypatch.setenv(spelling, entry)
    with pytest.raises(CoevoError, match="no answer"):
        to_push(REMOTE)
    assert seen == []
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "b.example")
    with pytest.raises(CoevoError, match="Bad Gateway"):
        to_push(REMOTE)
    assert seen


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"http_proxy": "socks5://u:secret@h:1"}, "http_proxy names a SOCKS proxy, which cannot be used here"),
        ({"http_proxy": "http://[::1"}, "http_proxy is no address of a proxy"),
        ({"HTTP_PROXY": "::1", "http_proxy": "::1"}, "http_proxy is no address of a proxy"),
        ({"NO_PROXY": "[::1"}, "NO_PROXY has '[::1', which is no host"),
        ({"AWS_ENDPOINT_URL": "http://[::1"}, "AWS_ENDPOINT_URL is not an address"),
        ({"AWS_ENDPOINT_URL": "127.0.0.1:9000"}, "AWS_ENDPOINT_URL is not an address"),
        ({"AWS_ENDPOINT_URL": "http://h:port"}, "AWS_ENDPOINT_URL is not an address"),
        ({"AWS_ENDPOINT_URL_S3": "h"}, "AWS_ENDPOINT_URL is not an address"),
    ],
)
def test_what_s3s_client_cannot_use_is_one_line_that_names_the_variable(
    monkeypatch, nobody, coevo, tmp_path, variables, line
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = coevo("pull", REMOTE, "--workspace", tmp_path)
    assert (done.code, done.err.count("\n"), "secret" in done.err) == (2, 1, False)
    assert done.err.startswith(f"coevo: {line}")


def test_a_run_goes_to_s3_and_back_and_on(call, coevo, s3, source, tmp_path):
    new = tmp_path / "new"
    call("push", source)
    before = s3.objects()
    assert call("push", source)["files"] == 0
    assert s3.objects() == before
    call("pull", new)
    assert content(new) == content(source)
    advance(new, "lotus a")
    assert call("push", new)["files"] == 7
    assert {key for key in before if s3.objects()[key] != before[key]} == {"team/coevo/runs/first/lineage.bundle"}
    call("pull", source)
    assert content(source) == content(new)
    advance(source, "lotus b")
    advance(new, "lotus c")
    call("push", source)
    assert "from revision 5 on they differ" in coevo("push", REMOTE, "--workspace", new).err


def test_a_push_that_was_overtaken_changes_nothing(s3):
    store = S3Store(REMOTE)
    store.write(b"old", None, "runs", "first", "lineage.bundle")
    held = store.read("runs", "first", "lineage.bundle")
    store.write(b"of another", held, "runs", "first", "lineage.bundle")
    for seen in (held, None):
        with pytest.raises(Overtaken):
            store.write(b"mine", seen, "runs", "first", "lineage.bundle")
    assert S3Store(REMOTE).read("runs", "first", "lineage.bundle").content == b"of another"


def test_a_killed_push_leaves_no_run_and_is_completed(call, refused, s3, source, tmp_path):
    killed = command("push", REMOTE, workspace=source, kill="coevo.lineage.remote.remote_objects:Objects._send@2")
    assert killed.returncode == -9, killed.stderr
    before = len(s3.objects())
    assert before > 20
    assert "it has no run 'first'" in refused("pull", tmp_path / "new")
    assert call("push", source)["files"] <= len(s3.objects()) - before  # what has arrived is not sent again
    call("pull", tmp_path / "new")
    assert content(tmp_path / "new") == content(source)


def test_damage_is_named(call, refused, s3, source, tmp_path):
    call("push", source)
    struck = next(key for key in s3.objects() if "/md5/" in key and not key.endswith(".dir"))
    s3.client().put_object(Bucket=BUCKET, Key=struck, Body=b"rotten")
    assert struck in refused("pull", tmp_path / "new")
    assert not (tmp_path / "new" / "runs" / "first").exists()


def test_a_server_that_goes_in_the_middle_is_one_line(refused, s3, source):
    def stop_soon():
        while s3.log.read_text().count('"PUT ') < 8:
            time.sleep(0.005)
        s3.stop()

    stopper = threading.Thread(target=stop_soon)
    stopper.start()
    said = refused("push", source)
    stopper.join()
    assert "no answer (" in said


def test_wrong_keys_no_bucket_and_no_server_are_one_line(refused, s3, source):
    assert "no such bucket" in refused("push", source, "s3://elsewhere/team")
    assert "not a remote, it is empty" in refused("pull", source)
    s3.demand_keys()
    assert "check who owns it, or the AWS_* keys" in refused("push", source)
    s3.stop()
    assert "check AWS_ENDPOINT_URL and the network" in refused("push", source)


def test_without_keys_they_are_asked_for(refused, s3, source, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert "no keys: set AWS_ACCESS_KEY_ID" in refused("push", source)
