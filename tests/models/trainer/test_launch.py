"""How several processes are started, and which hostfiles are refused."""

import os

import pytest

from coevo.configs.errors import CoevoError
from coevo.configs.update.deepspeed import DeepSpeedConfig
from coevo.configs.update.update import UpdateConfig
from coevo.models.trainer import launch
from coevo.models.trainer.client import Trainer, TrainerError

SSH = """#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
[ "$1" = there ] && exec sleep 60
echo "ssh: connect to host $1 port 22: No route to host" >&2
exit 255
"""
"""Stands in for ssh to a machine that is there, whose processes wait for the others, and to one that is not."""


def hosts(tmp_path, text):
    path = tmp_path / "hosts"
    path.write_text(text)
    return launch._hosts(path)


def test_a_hostfile_names_machines_and_their_processes(tmp_path):
    assert hosts(tmp_path, "# ours\nnode-1 slots=4\n\nuser@10.0.0.2   slots=2 # old\n") == {
        "node-1": ["0", "1", "2", "3"],
        "user@10.0.0.2": ["0", "1"],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node-1\n", r"'node-1' is malformed or repeated; write NAME slots=N"),
        ("node-1 slots=0\n", "slots=0"),
        ("-oProxyCommand=evil slots=1\n", "write NAME slots=N"),
        ("node-1 slots=1\nnode-1 slots=2\n", "each name once"),
        ("# none\n", "it names no machine"),
    ],
)
def test_another_hostfile_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(CoevoError, match=message) as error:
        hosts(tmp_path, text)
    assert "\n" not in str(error.value)


def test_a_hostfile_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CoevoError, match=r"hostfile='.*nowhere' does not exist: name a file"):
        launch._hosts(tmp_path / "nowhere")


def test_where_processes_compute_travels_with_them(monkeypatch):
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth 0")
    monkeypatch.setenv("SECRET", "x")
    command = launch._by_ssh(
        "node-1", ["python", "a b"], launch._environment(DeepSpeedConfig(hostfile="h", device="cuda"))
    )
    assert command[:3] == ["ssh", "-o", "BatchMode=yes"]
    assert command[-2] == "node-1"
    assert "'NCCL_SOCKET_IFNAME=eth 0'" in command[-1]
    assert "DS_ACCELERATOR=cuda" in command[-1]
    assert "SECRET" not in command[-1]
    assert command[-1].endswith("python 'a b'")


@pytest.mark.parametrize("names", [("there", "away"), ("away", "there")])
def test_a_machine_that_cannot_be_reached_ends_the_start_at_once(tmp_path, monkeypatch, names):
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    (tmp_path / "hosts").write_text("".join(f"{name} slots=1\n" for name in names))
    config = UpdateConfig(deepspeed=DeepSpeedConfig(hostfile=str(tmp_path / "hosts")))
    where = {"policy": tmp_path, "reference": tmp_path, "optimizer": None, "log": tmp_path / "log"}
    message = "^ssh to away failed: ssh: connect to host away port 22: No route to host; see .*log$"
    with (
        Trainer(config, temperature=1.0, threads=1, **where) as trainer,
        pytest.raises(TrainerError, match=message),
    ):
        trainer.wait()


def test_processes_take_the_gpus_that_they_are_left():
    left = {"CUDA_VISIBLE_DEVICES": "4,6,7"}
    assert launch._here(DeepSpeedConfig(device="cuda", processes=2), left) == ["4", "6"]
    assert launch._here(DeepSpeedConfig(processes=4), left) == ["0", "1", "2", "3"]
    with pytest.raises(CoevoError, match=r"processes=4, but CUDA_VISIBLE_DEVICES=4,6,7: each process needs its own"):
        launch._here(DeepSpeedConfig(device="cuda", processes=4), left)
