"""``coevo bank serve`` and ``coevo bank token``: a bank served by another process, until it is stopped or killed."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
from support.endpoint import post

import coevo as library


@contextmanager
def served(bank, *options):
    """Process of a server."""
    command = [sys.executable, "-P", "-m", "coevo.flows", "bank", "serve", str(bank), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def started(bank):
    """Address and process of a server."""
    with served(bank) as process:
        yield re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0], process


def test_its_document_comes_first_and_alone(coevo, tmp_path):
    library.open_bank(tmp_path / "bank")
    token = coevo("bank", "token", tmp_path / "bank").out.strip()
    with served(tmp_path / "bank", "--json") as process:
        told = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        assert told == {"bank": str(tmp_path / "bank"), "url": told["url"], "mcp": f"{told['url']}/mcp"}
        status, found = asked(told["url"], "/retrieve", {"query": "mug"}, token)
        assert (status, found["lessons"]) == (200, [])
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.read() == ""


def asked(url, path, body, token):
    status, answer = post(url, json.dumps(body).encode(), {"Authorization": f"Bearer {token}"}, path)
    return status, json.loads(answer)


def test_what_was_answered_survives_a_kill_and_tokens_outlive_the_server(coevo, tmp_path):
    bank = library.open_bank(tmp_path / "bank")
    (name,) = bank.add(["the mug is in the safe"], scope={"user": "ann"})
    token = coevo("bank", "token", tmp_path / "bank", "--user", "ann").out.strip()
    with started(tmp_path / "bank") as (url, process):
        assert asked(url, "/retrieve", {"query": "mug"}, token)[1]["lessons"][0]["id"] == name
        report = {"episodes": [{"shown": [name], "success": True}]}
        assert asked(url, "/outcomes", report, token) == (200, {"counted": 1})
        process.kill()
        process.wait()
    assert bank.stats()[name].successes == 1
    with started(tmp_path / "bank") as (url, process):
        assert asked(url, "/outcomes", report, token)[0] == 200
        assert coevo("bank", "token", tmp_path / "bank", "--renew").code == 0
        assert asked(url, "/outcomes", report, token)[0] == 401
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(30) == 130
    assert bank.stats()[name].successes == 2


@pytest.mark.parametrize("command", ["serve", "token"])
def test_a_directory_of_something_else_is_refused(refused, tmp_path, command):
    (tmp_path / "notes.txt").write_text("mine")
    assert "is no bank, it holds 'notes.txt'" in refused("bank", command, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_port_that_is_taken_is_refused(refused, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused("bank", "serve", tmp_path / "bank", "--port", taken.getsockname()[1])
    assert "Address already in use: choose another --port or --host" in said
    assert "choose another --port or --host" in refused("bank", "serve", tmp_path / "bank", "--host", "192.0.2.1")


def test_a_name_that_is_not_acceptable_is_refused(refused, tmp_path):
    library.open_bank(tmp_path / "bank")
    assert "user = '': is no name" in refused("bank", "token", tmp_path / "bank", "--user", "")
    assert "there is no such directory" in refused("bank", "token", tmp_path / "typo")
