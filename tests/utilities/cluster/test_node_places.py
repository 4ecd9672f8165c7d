"""Places on nodes: processes, their logs and files, and their end, without a shared folder and without Ray."""

import json
import os
from contextlib import closing
from functools import partial
from pathlib import Path

import psutil
import pytest
from support.near_cluster import near_cluster

from coevo.configs.update.update_config import DeepSpeedConfig
from coevo.models.trainer import trainer_launch
from coevo.models.trainer.trainer_launch import TrainerRanks
from coevo.utilities.cluster.joined_cluster import ActorLostError, ClusterError
from coevo.utilities.cluster.node_places import TRIES, ClusterLauncher
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import ONE_CORE, Launch, wait

ECHO = """
import sys
print(*sys.argv[1:], file=sys.stderr, flush=True)
for line in sys.stdin:
    print(open(line.strip()).read(), flush=True)
"""
PARENT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("started", flush=True)
time.sleep(600)
"""
CHILD = """
import json, os, sys
rank = os.environ["RANK"]
if rank == "0":
    print("127.0.0.1:7", flush=True)
else:
    print("meets at", sys.stdin.readline().strip(), file=sys.stderr, flush=True)
for line in sys.stdin:
    print(json.dumps({"result": [rank, json.loads(line)]}), flush=True)
"""


@pytest.fixture
def cluster():
    with near_cluster(2) as made:
        yield made


@pytest.fixture
def launcher(cluster):
    return ClusterLauncher(lambda: cluster, 60.0)


def gone(processes):
    return not psutil.wait_procs(processes, timeout=60)[1]


def test_a_process_has_an_address_files_and_a_log_with_its_name_and_ends_with_its_place(launcher, cluster, tmp_path):
    sent = tmp_path / "given"
    (sent / "below").mkdir(parents=True)
    (sent / "below" / "text").write_text("words")
    (place,) = launcher.places(1, ONE_CORE, "pool")
    name, log = launcher.send(sent, [place]), tmp_path / "log"
    command = ["{python}", "-c", ECHO, "{host}", "{port}"]
    process = place.start(Launch(command, {}, log, leash=True, replies=True, mark="server-0"))
    process.write(f"{name}/below/text\n".encode())
    assert process.line(60) == b"words\n"
    wait(lambda: process.runs() and log.exists(), 60)
    host, _, port = process.address.partition(":")
    assert log.read_text() == f"[server-0 on 127.0.0.1] {host} {port}\n"
    place.fetch(name, tmp_path / "back")
    assert (tmp_path / "back" / "below" / "text").read_text() == "words"
    assert not (place.folder / name).exists()
    family, folder = [psutil.Process(process.pid)], place.folder
    place.end()
    assert gone(family)
    wait(lambda: not folder.exists(), 60)
    assert not folder.exists()
    assert cluster.free == 2


def test_a_place_that_is_lost_ends_its_process_and_says_so(launcher, cluster, tmp_path):
    (place,) = launcher.places(1, ONE_CORE, "pool")
    process = place.start(Launch(["{python}", "-c", ECHO], {}, tmp_path / "log", leash=True, replies=True))
    family = [psutil.Process(process.pid)]
    cluster.actors[0].lose()
    assert (process.runs(), process.status(), process.line(1)) == (False, -9, b"")
    assert process.lost == "its node has gone"
    with pytest.raises(BrokenPipeError, match="its node has gone"):
        process.write(b"more\n")
    process.stop()
    place.end()
    assert gone(family)


def test_a_server_ends_with_all_that_it_started_when_ray_kills_the_children_of_its_actor(launcher, tmp_path):
    (place,) = launcher.places(1, ONE_CORE, "pool")
    process = place.start(Launch(["{python}", "-c", PARENT], {}, tmp_path / "log", guard="leash"))
    wait(lambda: process.runs() and "started" in (tmp_path / "log").read_text(), 120)
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) == 3  # a second guard, the program, and what it started
    os.kill(process.pid, 9)
    assert gone(family)
    assert process.status() == -9
    place.end()


def test_a_program_that_is_not_there_is_one_line_with_its_node(launcher, tmp_path):
    (place,) = launcher.places(1, ONE_CORE, "pool")
    with pytest.raises(CoevoError, match=r"^/nowhere: No such file or directory on the node 127\.0\.0\.1$"):
        place.start(Launch(["/nowhere"], {}, tmp_path / "log"))
    place.end()


def test_all_have_room_or_none_has(launcher, cluster):
    with pytest.raises(ClusterError, match="asks for 3 places"):
        launcher.places(3, ONE_CORE, "pool")
    first, second = launcher.places(2, ONE_CORE, "pool")
    with pytest.raises(ClusterError, match="asks for 1 places, and 0 are free"):
        launcher.places(1, ONE_CORE, "pool")
    first.end()
    assert cluster.free == 0
    second.end()
    assert cluster.free == 2


@pytest.mark.parametrize("deaths", range(TRIES))
def test_places_whose_node_ends_while_they_start_are_sought_again(launcher, cluster, deaths):
    cluster.dying = deaths
    first, second = launcher.places(2, ONE_CORE, "pool")
    assert (first.actor.lost, second.actor.lost, cluster.free) == (False, False, 0)
    first.end()
    second.end()
    assert cluster.free == 2


def test_nodes_that_end_again_and_again_are_one_line_and_keep_no_room(launcher, cluster):
    cluster.dying = TRIES
    with pytest.raises(ActorLostError, match=r"^its node has gone$"):
        launcher.places(1, ONE_CORE, "pool")
    assert cluster.free == 2


@pytest.fixture
def ranks(launcher, tmp_path, monkeypatch):
    """Starts two trainer processes, with a small program in their place."""
    (tmp_path / "small_child.py").write_text(CHILD)
    monkeypatch.setattr(trainer_launch, "CHILD", "small_child")
    monkeypatch.syspath_prepend(tmp_path)
    start = partial(TrainerRanks, DeepSpeedConfig(processes=2), tmp_path / "ranks.log", None, launcher)
    with closing(start()) as made:
        yield made


def asked(ranks, text):
    ranks.write(json.dumps(text).encode() + b"\n")
    while (line := ranks.line(60)) is None:
        assert not ranks.ended()
    return json.loads(line)["result"]


def test_ranks_meet_at_the_port_of_the_first_one(ranks, tmp_path):
    assert asked(ranks, "go") == ["0", "go"]
    log = tmp_path / "ranks.log"
    wait(lambda: not ranks.ended() and log.exists() and b"meets" in log.read_bytes(), 60)
    assert log.read_text() == "[1 on 127.0.0.1] meets at 127.0.0.1:7\n"
    batch = tmp_path / "batch"
    batch.write_text("rows")
    name = ranks.send(batch)
    for place in ranks._places:
        assert (place.folder / name).read_text() == "rows"
    ranks.forget(name)
    assert not [place for place in ranks._places if Path(place.folder, name).exists()]


def test_a_rank_that_dies_or_is_lost_can_be_replaced(ranks, cluster):
    assert asked(ranks, "go") == ["0", "go"]
    os.kill(ranks._processes[1].pid, 9)
    wait(ranks.ended, 60)
    words, repeatable = ranks.last_words()
    assert words.startswith("process 1 of the trainer's 2 on 127.0.0.1 died (exit status -9); see")
    assert repeatable
    cluster.actors[0].lose()
    assert ranks.last_words()[0].startswith("process 0 of the trainer's 2 on 127.0.0.1 died (its node has gone); see")
