"""The command, the addresses and the files of docs/watch.md, on a small run."""

import json
import re
import shlex

import pytest
from starlette.testclient import TestClient
from support.guide_files import DOCS
from support.small_run import build

from coevo.flows.cli import serve
from coevo.flows.servers import servers
from coevo.flows.watch import watch_server
from coevo.flows.watch.watch_app import WatchSite, watch_app
from coevo.lineage.workspace import Workspace

PAGE = (DOCS / "watch.md").read_text(encoding="utf-8")


def test_the_command_prints_a_link_and_a_token(tmp_path, monkeypatch, capsys):
    build(tmp_path, "household")
    monkeypatch.setattr(watch_server, "ensure_watch", lambda root: ("http://127.0.0.1:1", "secret"))
    monkeypatch.setattr(servers, "new_link", lambda *_: "http://127.0.0.1:1/coevo/open/x")
    (line,) = re.findall(r"^\$ coevo watch (.*)$", PAGE, re.MULTILINE)
    serve.watch(*shlex.split(line), as_json=True, directory=tmp_path)
    told = json.loads(capsys.readouterr().out)
    assert told["url"].endswith("#household")
    assert re.fullmatch("[0-9a-f]{16}", told["token"])


def test_the_addresses_and_the_index_are_there(tmp_path):
    build(tmp_path, "household")
    asked = TestClient(watch_app(WatchSite(Workspace(tmp_path), "token")), base_url="http://127.0.0.1")
    addresses = re.findall(r"`(runs/household[^`]*)`", PAGE)
    assert len(addresses) == 3
    for address in addresses:
        assert asked.get(f"/{address}").status_code == 200, address
    assert (tmp_path / re.search(r"`(watch/[^`]+)`", PAGE)[1]).is_file()


@pytest.mark.parametrize("name", ["overview", "bank", "candidates", "lesson", "episodes", "approval"])
def test_each_page_of_the_table_has_a_template(name):
    assert f"| {name} |" in PAGE
    assert (watch_server.Path(watch_server.__file__).parent / "pages" / f"{name}.html").is_file()
