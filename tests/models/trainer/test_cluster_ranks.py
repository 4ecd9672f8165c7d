"""Trainer processes on a real Ray cluster: the steps of local ones, with files that travel, and their end."""

import os
import signal
from functools import partial
from types import SimpleNamespace

import psutil
import pytest
from safetensors.torch import load_file
from support.clusters import local_cluster
from support.families import command_of
from support.trainer import LocalTrainer

from coevo.configs.update.loss import LossConfig
from coevo.configs.update.update_config import DeepSpeedConfig, OptimizerConfig, UpdateConfig
from coevo.models.trainer.trainer_client import StartingPoint, Trainer, TrainerLostError
from coevo.models.trainer.trainer_launch import CHILD, TrainerRanks
from coevo.records.draws import key
from coevo.utilities.cluster.node_places import ClusterLauncher
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import Resources

pytestmark = [pytest.mark.full, pytest.mark.timeout(3000)]
CONFIG = UpdateConfig(
    loss=LossConfig(kl_coefficient=0.05, importance_cap=2.0),
    optimizer=OptimizerConfig(lr=1e-3, minibatches=2),
    deepspeed=DeepSpeedConfig(tokens=60, timeout=1500.0, processes=2),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with local_cluster(tmp_path_factory.mktemp("ray"), cpus=2) as cluster:
        yield cluster


def placed(cluster, **asked):
    return partial(TrainerRanks, launcher=ClusterLauncher(cluster.join, 120.0), resources=Resources(**asked))


def trainer(policy, log, launch):
    return Trainer(CONFIG, StartingPoint(policy, policy), temperature=0.8, threads=1, log=log, launch=launch)


def trained(it, batch, into):
    """Metrics, scores and files of an update."""
    into.mkdir()
    metrics = dict(it.update(batch, key(1)).metrics)
    metrics.pop("tokens_per_second")
    scores = it.score(batch, into / "scores")
    it.save(into / "policy", into / "optimizer")
    files = sorted(path for path in into.rglob("*.safetensors"))
    return metrics, scores, {f"{path.parent.name}/{path.name}": load_file(path) for path in files}


def test_they_take_the_steps_of_local_ones_and_leave_nothing_behind(cluster, policy_path, samples_path, tmp_path):
    log = tmp_path / "ranks.log"
    with trainer(policy_path, log, placed(cluster)) as ranks:
        there = trained(ranks, samples_path, tmp_path / "there")
        assert len(list(cluster.temporary.glob("coevo-place-*"))) == 2
    settings = SimpleNamespace(update=CONFIG, rollout=SimpleNamespace(sampling=SimpleNamespace(temperature=0.8)))
    here = trained(LocalTrainer(settings, policy_path), samples_path, tmp_path / "here")
    assert there[0] == pytest.approx(here[0], abs=1e-5)
    assert there[2].keys() == here[2].keys()
    for name, tensors in here[2].items():
        for part, value in tensors.items():
            assert (there[2][name][part] - value).abs().max() <= 2e-5
    assert "[0 on 127.0.0.1] " in log.read_text()
    assert not list(cluster.temporary.glob("coevo-place-*"))


def test_a_rank_that_dies_ends_the_update_which_others_repeat(cluster, policy_path, samples_path, tmp_path):
    with trainer(policy_path, tmp_path / "log", placed(cluster)) as it:
        expected = dict(it.update(samples_path, key(1)).metrics)
        it.wait()
        children = [each for each in cluster.family(cluster.head) if CHILD in command_of(each)]
        victim = next(each for each in children if each.environ()["RANK"] == "1")
        os.kill(victim.pid, signal.SIGKILL)
        with pytest.raises(
            TrainerLostError, match=r"process 1 of the trainer's 2 on 127\.0\.0\.1 died \(exit"
        ) as error:
            while True:
                it.update(samples_path, key(1))
        assert "\n" not in str(error.value)
        it.restart(StartingPoint(policy_path, policy_path))
        repeated = dict(it.update(samples_path, key(1)).metrics)
        assert repeated == {**expected, "tokens_per_second": repeated["tokens_per_second"]}
    assert not psutil.wait_procs(children, timeout=60)[1]


def test_too_few_gpus_are_one_line(cluster, policy_path, tmp_path):
    with pytest.raises(CoevoError, match=r"placement\.pools\.trainer asks for 1 CPU, 1 GPU of a node, and 127"):
        trainer(policy_path, tmp_path / "log", placed(cluster, gpus=1))
