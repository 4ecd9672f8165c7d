"""MLflow's server of a workspace: who may use it, and that nobody chooses a folder of this machine."""

import json
import os
import re
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from coevo.flows.servers.daemon import down, recorded
from coevo.flows.servers.mlflow_server import is_folder
from coevo.flows.servers.server_secret import authorization_of, secret_of
from coevo.flows.servers.servers import ensure_mlflow_ui, mlflow_pages, use_mlflow
from coevo.tasks.publish.mlflow.tracking_store import client, reached, tracking_store

STRANGERS = {
    "another account": ({}, 401),
    "another account that guesses": ({"Authorization": authorization_of("user:guess")}, 401),
    "a token": ({"Authorization": "Bearer x"}, 401),
    "a cookie of its own": ({"Cookie": "coevo-1=x; session=y"}, 401),
    "a page of another site": ({"Origin": "https://evil.example"}, 403),
    "a page of another port": ({"Origin": "http://127.0.0.1:9"}, 403),
    "a page of another port by name": ({"Origin": "http://localhost:9"}, 403),
    "a page without an origin": ({"Origin": "null"}, 403),
    "a name that leads here": ({"Host": "evil.example"}, 403),
    "another name of this machine": ({"Host": "127.0.0.2:5000"}, 403),
}
REQUESTS = (
    ("GET", "/", {}),
    ("GET", "/version", {}),
    ("GET", "/get-artifact?path=x&run_id=y", {}),
    ("POST", "/api/2.0/mlflow/registered-models/create", {"name": "stranger"}),
    ("POST", "/api/2.0/mlflow/registered-models/alias", {"name": "m", "alias": "champion", "version": "1"}),
    ("POST", "/ajax-api/2.0/mlflow/experiments/create", {"name": "stranger"}),
    ("POST", "/ajax-api/2.0/mlflow/upload-artifact?run_uuid=y&path=agent.py", {}),
    ("POST", "/graphql", {"query": "{__typename}"}),
    ("POST", "/v1/traces", {}),
    ("POST", "/coevo/links", {}),
    ("PUT", "/api/2.0/mlflow-artifacts/artifacts/x", {}),
)
FOLDERS = (
    "file:/etc", "file:///etc", "FILE:///etc", " file:/etc", "/etc", "./mlruns", "mlruns", "../x", "", "C:\\x", "c:/x",
)  # fmt: skip
PLACES = ("s3://bucket/x", "gs://bucket", "mlflow-artifacts:/x", "hdfs://host/x", "dbfs:/x")


@pytest.mark.parametrize("place", FOLDERS)
def test_a_folder_of_this_machine_is_known(place):
    assert is_folder(place)


@pytest.mark.parametrize("place", PLACES)
def test_other_storage_is_no_folder(place):
    assert not is_folder(place)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("guarded")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        ensure_mlflow_ui(root)
        yield root
        down(root)


@pytest.fixture
def ask(root):
    (server,) = recorded(root)

    def asking(method, path, headers, body=b""):
        address = urlsplit(server.url).netloc
        connection = HTTPConnection(address, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        sent = {"Host": address, "Content-Type": "application/json", "Content-Length": str(len(body))} | headers
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        with connection.getresponse() as answer:
            said = answer.status, answer.read(), answer.headers
        connection.close()
        return said

    return asking


@pytest.fixture
def having_it(root):
    return {"Authorization": authorization_of(secret_of(root, "mlflow"))}


@pytest.mark.full
@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_stranger_gets_nothing_and_changes_nothing(root, ask, having_it, stranger):
    headers, status = STRANGERS[stranger]
    for method, path, body in REQUESTS:
        answer, said, _ = ask(method, path, headers, json.dumps(body).encode())
        assert (path, answer, said.count(b"\n")) == (path, status, 1)
    if status == 403:  # even with the secret
        assert ask("POST", REQUESTS[3][1], having_it | headers, b'{"name": "stranger"}')[0] == 403
    with reached(tracking_store(root), "") as registry:
        assert list(registry.search_registered_models()) == []
        assert [each.name for each in registry.search_experiments()] == ["Default"]


@pytest.mark.full
@pytest.mark.parametrize("folder", [place for place in FOLDERS if place.strip()])
@pytest.mark.parametrize("name", ["artifact_location", "artifactLocation"])
def test_nobody_chooses_a_folder_for_an_experiment(ask, having_it, folder, name):
    asked = json.dumps({"name": "folder", name: folder})
    for body in (asked, json.dumps(asked)):
        for version in ("api", "ajax-api"):
            answer, said, _ = ask("POST", f"/{version}/2.0/mlflow/experiments/create", having_it, body.encode())
            assert (answer, said.count(b"\n")) == (403, 1)


@pytest.mark.full
def test_a_link_opens_the_pages_for_one_browser_below_a_path_of_their_own(root, ask):
    link = urlsplit(mlflow_pages(root)).path
    status, page, headers = ask("GET", link, {})
    assert status == 200
    cookie, path = re.match(r"(.+?); HttpOnly; SameSite=Strict; Path=(/.+/)$", headers["set-cookie"]).groups()
    assert path in page.decode()
    assert ask("GET", link, {})[0] == 401
    search = ("ajax-api/2.0/mlflow/experiments/search", b'{"max_results": 9}')
    assert b"<title>MLflow</title>" in ask("GET", path, {"Cookie": cookie})[1]
    assert b"Default" in ask("POST", path + search[0], {"Cookie": cookie}, search[1])[1]
    assert ask("POST", "/" + search[0], {"Cookie": cookie}, search[1])[0] == 401  # a server of another port gets it
    assert ask("POST", path + search[0], {}, search[1])[0] == 401  # another account has seen the address
    assert ask("POST", path + search[0], {"Cookie": cookie, "Origin": "http://127.0.0.1:9"}, search[1])[0] == 403
    assert ask("POST", path + "coevo/links", {"Cookie": cookie})[0] in (404, 405)


@pytest.mark.full
def test_a_process_that_is_told_to_use_the_server_gets_the_secret_and_only_then(root, monkeypatch, tmp_path):
    (server,) = recorded(root)
    names = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
    for name in names:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    use_mlflow(root)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
    use_mlflow(tmp_path)
    assert not any(name in os.environ for name in names)
    use_mlflow(root)
    assert [each.name for each in client(tracking_store(root)).search_experiments()] == ["Default"]
