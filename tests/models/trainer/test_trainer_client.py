"""The trainer child: what it computes over the pipe, how it resumes, and how it ends."""

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from support.rows import TEMPERATURE

from coevo.configs.update.advantage_config import GaeConfig
from coevo.configs.update.loss import LossConfig
from coevo.configs.update.update_config import CriticConfig, DeepSpeedConfig, OptimizerConfig, UpdateConfig
from coevo.models.trainer import child
from coevo.models.trainer.trainer_client import StartingPoint, Trainer, TrainerError, TrainerLostError
from coevo.models.trainer.update_batch import read
from coevo.records.draws import key
from coevo.utilities.processes import PlaceLostError

PARENT = """
import sys, time
from pathlib import Path
from coevo.configs.update.update_config import UpdateConfig
from coevo.models.trainer.trainer_client import StartingPoint, Trainer
path, log = map(Path, sys.argv[1:])
trainer = Trainer(
    UpdateConfig(), StartingPoint(path, path), temperature=1.0, threads=1, log=log
)
print(trainer.pid, flush=True)
time.sleep(600)
"""


@contextmanager
def trainer(policy, log, optimizer=None, reference=None, timeout=600.0):
    config = UpdateConfig(
        loss=LossConfig(kl_coefficient=0.03),
        optimizer=OptimizerConfig(lr=1e-2, minibatches=2),
        deepspeed=DeepSpeedConfig(timeout=timeout),
    )
    start = StartingPoint(policy, reference or policy, optimizer)
    with Trainer(config, start, temperature=TEMPERATURE, threads=1, log=log) as it:
        yield it


def test_one_whose_node_ends_while_it_starts_is_lost_as_any_other(policy_path, tmp_path):
    def launch(config, log):
        raise PlaceLostError("its node has gone")

    with pytest.raises(TrainerLostError, match=r"^its node has gone$"):
        Trainer(
            UpdateConfig(), StartingPoint(policy_path, policy_path), temperature=1.0, threads=1, log=tmp_path / "log",
            launch=launch,
        )  # fmt: skip


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def hang(it, batch):
    """The process stops in the middle of its work, and the next update ends it."""
    it._timeout = 0.5
    os.kill(it.pid, signal.SIGSTOP)
    with pytest.raises(TrainerError, match=r"update took longer than update\.deepspeed\.timeout=0\.5 s") as error:
        it.update(batch, key(0))
    assert "\n" not in str(error.value)
    wait_until(lambda: not alive(it.pid))


@pytest.mark.full
def test_a_new_child_continues_bit_for_bit_after_one_that_hung(
    policy_path, samples_path, empty_path, tmp_path, monkeypatch
):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "compiled"))
    middle, straight, resumed = (tmp_path / name for name in ("middle", "straight", "resumed"))
    with trainer(policy_path, tmp_path / "log") as first:
        report = first.update(samples_path, key(0))
        first.save(middle / "policy", middle / "optimizer")
        again = first.update(samples_path, key(1))
        nothing = first.update(empty_path, key(2))
        first.save(straight / "policy", straight / "optimizer")
        hang(first, samples_path)
    with trainer(middle / "policy", tmp_path / "log", middle / "optimizer", reference=policy_path) as second:
        repeated = second.update(samples_path, key(1))
        second.save(resumed / "policy", resumed / "optimizer")
        with pytest.raises(TrainerError, match=r"FileNotFoundError.*nowhere"):
            second.update(tmp_path / "nowhere", key(0))
    assert report.metrics["mismatch_max"] < 1e-5
    assert report.metrics["steps"] == 2
    assert report.metrics["kl"] < again.metrics["kl"]
    assert (nothing.metrics["steps"], nothing.metrics["loss"]) == (0, 0)
    rates = {"tokens_per_second": 0.0}
    assert {**again.metrics, **rates} == {**repeated.metrics, **rates}
    files = sorted(path.relative_to(straight) for path in straight.rglob("*") if path.is_file())
    assert {path.suffix for path in files} <= {".safetensors", ".json", ".jinja"}
    for file in files:
        assert (straight / file).read_bytes() == (resumed / file).read_bytes(), file
    weights = load_file(middle / "policy" / "model.safetensors"), load_file(straight / "policy" / "model.safetensors")
    assert any(not weights[0][name].equal(weights[1][name]) for name in weights[0])
    assert not (tmp_path / "compiled").exists()  # nothing needed a compiler
    assert first.pid != second.pid


@pytest.mark.full
def test_a_critic_that_learns_alone_and_reference_scores_travel_and_resume(policy_path, samples_path, tmp_path):
    config = UpdateConfig(
        advantage=GaeConfig(type="gae"),
        loss=LossConfig(kl_in="reward"),
        critic=CriticConfig(optimizer=OptimizerConfig(lr=1e-2), warmup=1),
    )
    options = {"temperature": TEMPERATURE, "threads": 1, "log": tmp_path / "log"}
    with Trainer(config, StartingPoint(policy_path, policy_path), **options) as first:
        fresh = first.score(samples_path, tmp_path / "scores")
        alone = first.update_critic(samples_path, key(0)).metrics
        first.save(tmp_path / "policy", tmp_path / "optimizer")
        both = first.update(samples_path, key(1)).metrics
        learned = first.score(samples_path, tmp_path / "scores")
    later = StartingPoint(tmp_path / "policy", policy_path, tmp_path / "optimizer")
    with Trainer(config, later, **options) as second:
        again = second.update(samples_path, key(1)).metrics
        resumed = second.score(samples_path, tmp_path / "scores")
    assert alone.keys() == {"critic_loss", "critic_grad_norm"}
    before, after = (load_file(path / "model.safetensors") for path in (policy_path, tmp_path / "policy"))
    assert all(before[name].equal(after[name]) for name in before)
    assert {**both, "tokens_per_second": 0.0} == {**again, "tokens_per_second": 0.0}
    assert both["critic_loss"] > 0
    samples = read(samples_path)
    for row, completion in enumerate(samples.completions):
        behaviour = samples.behaviour[row, : len(completion)].tolist()
        assert len(fresh.values[row]) == len(fresh.reference[row]) == len(completion)
        assert not fresh.values[row].any()
        assert learned.values[row].any()
        assert fresh.reference[row].tolist() == pytest.approx(behaviour, abs=1e-5)
        assert learned.values[row].tolist() == resumed.values[row].tolist()
        assert learned.reference[row].tolist() == resumed.reference[row].tolist() == fresh.reference[row].tolist()
    files = {path.relative_to(tmp_path / "optimizer").as_posix() for path in (tmp_path / "optimizer").rglob("*.*")}
    assert files == {"state.safetensors", "critic/state.safetensors", "critic/critic.safetensors"}


def test_a_child_that_takes_too_long_is_killed_and_a_dead_one_is_one_line_with_its_last_words(
    policy_path, samples_path, tmp_path
):
    log = tmp_path / "log"
    log.write_text("another child's words\n")
    with trainer(policy_path, log, timeout=0.5) as it:
        os.kill(it.pid, signal.SIGSTOP)
        with pytest.raises(TrainerError, match=r"start took longer than update\.deepspeed\.timeout=0\.5 s"):
            it.update(samples_path, key(0))
        wait_until(lambda: not alive(it.pid))
    with trainer(policy_path, log) as it:
        os.kill(it.pid, signal.SIGKILL)
        with pytest.raises(TrainerError, match=r"trainer died \(exit status -9\): it wrote nothing; see") as error:
            it.update(samples_path, key(0))
        assert "\n" not in str(error.value)
        with pytest.raises(TrainerError, match="died"):
            it.save(tmp_path / "policy", tmp_path / "optimizer")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_memory_that_runs_out_is_named_with_what_takes_less(error):
    said = child._words(error)
    assert said.startswith("the trainer has run out of memory (")
    assert "lower update.deepspeed.tokens" in said
    assert "coevo resume" in said
    assert "\n" not in said


@pytest.mark.full
def test_a_policy_that_is_not_there_is_named(samples_path, tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").write_text("raise ImportError('not this one')")
    monkeypatch.chdir(tmp_path)  # a user's own packages must not get in the way
    with trainer(tmp_path / "nowhere", tmp_path / "log") as it, pytest.raises(TrainerError, match="nowhere") as error:
        it.update(samples_path, key(0))
    assert "died" not in str(error.value)


def test_the_child_does_not_outlive_a_killed_parent(policy_path, tmp_path):
    command = [sys.executable, "-c", PARENT, str(policy_path), str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
        wait_until(lambda: not alive(pid), 30)
