"""How several processes are started, here and on other machines."""

import os

import pytest

from coevo.configs.update.update_config import DeepSpeedConfig, UpdateConfig
from coevo.models.trainer import trainer_launch
from coevo.models.trainer.trainer_client import StartingPoint, Trainer, TrainerError
from coevo.utilities.errors import CoevoError

SSH = """#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
[ "$1" = there ] && exec sleep 60
echo "ssh: connect to host $1 port 22: No route to host" >&2
exit 255
"""
"""Stands in for ssh to a machine that is there, whose processes wait for the others, and to one that is not."""


def test_processes_elsewhere_take_the_first_gpus_of_their_machine(tmp_path):
    (tmp_path / "hosts").write_text("node-1 slots=3\nnode-2 slots=1\n")
    assert trainer_launch._elsewhere(tmp_path / "hosts") == {"node-1": ["0", "1", "2"], "node-2": ["0"]}


def test_where_processes_compute_travels_with_them(monkeypatch):
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth 0")
    monkeypatch.setenv("SECRET", "x")
    command = trainer_launch._by_ssh(
        "node-1", ["python", "a b"], trainer_launch._environment(DeepSpeedConfig(hostfile="h", device="cuda"))
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
    start, log = StartingPoint(tmp_path, tmp_path), tmp_path / "log"
    message = "^ssh to away failed: ssh: connect to host away port 22: No route to host; see .*log$"
    with (
        Trainer(config, start, temperature=1.0, threads=1, log=log) as trainer,
        pytest.raises(TrainerError, match=message),
    ):
        trainer.wait()


def test_processes_take_the_gpus_that_they_are_left():
    left = {"CUDA_VISIBLE_DEVICES": "4,6,7"}
    assert trainer_launch._here(DeepSpeedConfig(device="cuda", processes=2), left) == ["4", "6"]
    assert trainer_launch._here(DeepSpeedConfig(processes=4), left) == ["0", "1", "2", "3"]
    with pytest.raises(CoevoError, match=r"processes=4, but CUDA_VISIBLE_DEVICES=4,6,7: each process needs its own"):
        trainer_launch._here(DeepSpeedConfig(device="cuda", processes=4), left)
