"""The bank alone beside other processes: readers, a second writer, and writers that are killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

import coevo
from benchmarks.running.bank_alone import measure_readers
from coevo.utilities.errors import CoevoError

WRITER = """
import sys
import coevo
bank = coevo.open_bank(sys.argv[1])
while True:
    n = bank.revision.number
    bank.add([f"lesson {n} {part}" for part in ("a", "b", "c")])
    print(bank.revision.number, flush=True)
"""
DYING = """
import os, signal, sys
import coevo
from coevo.tasks.bank_alone.bank_revisions import BankRevisions
bank = coevo.open_bank(sys.argv[1])
BankRevisions.commit = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
bank.add(["never committed"])
"""
HEAVY = ("torch", "prefect", "mlflow", "dvc", "transformers", "great_expectations", "omegaconf", "lancedb")
IMPORT = f"""
import sys
import coevo
coevo.open_bank
print(*sorted({{{", ".join(map(repr, HEAVY))}}} & sys.modules.keys()))
"""
USE = f"""
import sys
import coevo
bank = coevo.open_bank(sys.argv[1])
bank.propose(["a"])
bank.learn(lambda memory, lesson, draws: [0.0 for _ in draws])
bank.retrieve("a")
talk = [{{"role": "user", "content": "a"}}, {{"role": "assistant", "content": "b"}}]
bank.record([coevo.ChatTrajectory(talk, 1.0, True)] * 2)
bank.write(lambda trajectories, memory: ["b"])
print(*sorted({{{", ".join(map(repr, HEAVY))}}} & sys.modules.keys()))
"""
ASK = f"""
import sys
import coevo
bank = coevo.open_bank(sys.argv[1])
bank.record([coevo.ChatTrajectory([{{"role": "assistant", "content": "b"}}], 1.0, True, task="a")])
try:
    model = {{"type": "endpoint", "url": "http://127.0.0.1:9/v1", "model": "m", "retries": 0}}
    bank.write({{"type": "model-contrast", "model": model}}, warn=lambda line: None)
except coevo.CoevoError as error:
    assert "no question of the writer was answered" in str(error)
print(*sorted({{{", ".join(map(repr, HEAVY))}}} & sys.modules.keys()))
"""


def started(code, path):
    return subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)


def printed(code, path):
    return subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    ).stdout.split()


def test_it_loads_neither_a_trainer_nor_an_orchestrator(tmp_path):
    assert printed(IMPORT, tmp_path) == []
    assert printed(USE, tmp_path) == ["lancedb"]
    assert printed(ASK, tmp_path) == ["lancedb"]


def test_a_writer_that_is_killed_before_its_commit_leaves_the_revision_before(tmp_path):
    bank = coevo.open_bank(tmp_path)
    bank.add(["kept"])
    before = bank.revision
    writer = started(DYING, tmp_path)
    assert writer.wait() == -signal.SIGKILL
    for reader in (bank, coevo.open_bank(tmp_path)):
        assert reader.revision == before
        assert [entry.strategy for entry in reader.entries()] == ["kept"]
    assert not bank.retrieve("never committed")
    bank.add(["after"])
    assert {entry.strategy for entry in coevo.open_bank(tmp_path).entries()} == {"kept", "after"}


def test_readers_see_whole_revisions_of_a_writer_that_is_killed_at_any_time(tmp_path):
    bank = coevo.open_bank(tmp_path)
    for seconds in (0.0, 0.013, 0.031):
        writer = started(WRITER, tmp_path)
        for _ in range(4):
            announced = int(writer.stdout.readline())
            seen = bank.revision.number
            assert seen >= announced  # a reader is never behind what a writer has announced
            held = bank.entries()
            assert len(held) % 3 == 0 and len(held) >= 3 * seen
        time.sleep(seconds)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert len(bank.entries()) == 3 * bank.revision.number == len(coevo.open_bank(tmp_path).entries())


def test_a_second_writer_is_refused_and_readers_are_not(tmp_path):
    bank, other = coevo.open_bank(tmp_path), coevo.open_bank(tmp_path)
    bank.add(["knock first"])
    bank.propose(["look around"])

    def replay(memory, lesson, draws):
        with pytest.raises(CoevoError, match="another process changes this bank: try again"):
            other.add(["meanwhile"])
        assert len(other.retrieve("knock")) == 1
        return [0.0 for _ in draws]

    bank.learn(replay, replays=8)
    other.add(["afterwards"])
    assert len(bank.retrieve("afterwards")) == 1


@pytest.mark.full
def test_none_of_eight_readers_is_stale_or_sees_half_a_revision_while_one_process_writes(tmp_path):
    found = measure_readers(tmp_path, seconds=5.0)
    assert (found["readers"], found["stale"], found["torn"]) == (8, 0, 0)
    assert found["revisions"] >= 5 and found["reads"] >= 100
