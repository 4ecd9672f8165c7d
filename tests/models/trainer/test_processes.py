"""Several trainer processes do what one does, whatever the ZeRO stage, and end together."""

import copy
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file
from support.families import command_of
from support.ranks import trained
from support.rows import TEMPERATURE
from support.soak import mostly_soak

from coevo.configs.update.advantage_config import GaeConfig
from coevo.configs.update.loss import LossConfig
from coevo.configs.update.update_config import CriticConfig, DeepSpeedConfig, OptimizerConfig, UpdateConfig
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import save
from coevo.models.trainer.trainer_client import StartingPoint, Trainer, TrainerError
from coevo.models.trainer.trainer_launch import CHILD
from coevo.models.trainer.update_batch import read
from coevo.records.draws import key

pytestmark = pytest.mark.full

INFRA = Path(__file__).parents[3] / "infra" / "deepspeed"
PARENT = """
import sys
from pathlib import Path
from coevo.configs.update.update_config import UpdateConfig
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import save
from coevo.models.trainer.update_batch import read
from coevo.models.trainer.trainer_launch import CHILD
from coevo.models.trainer.trainer_client import StartingPoint, Trainer
config, policy, batch, place = sys.argv[1:]
place = Path(place)
trainer = Trainer(
    UpdateConfig.model_validate_json(config), StartingPoint(Path(policy), Path(policy)), temperature=0.8, threads=1,
    log=place / "log",
)
trainer.score(Path(batch), place / "scores")
trainer.save(place / "policy", place / "optimizer")
print(trainer.pid, flush=True)
trainer.update(Path(batch), (0,))
"""


def settings(**deepspeed):
    """GRPO and a critic, micro-batches of which two processes get different numbers."""
    return UpdateConfig(
        advantage=GaeConfig(type="gae"),
        loss=LossConfig(kl_coefficient=0.05, importance_cap=2.0),
        critic=CriticConfig(optimizer=OptimizerConfig(lr=1e-3, minibatches=2)),
        optimizer=OptimizerConfig(lr=1e-3, minibatches=2, clip=0.5),
        deepspeed=DeepSpeedConfig.model_validate({"tokens": 60, "timeout": 240.0} | deepspeed),
    )


def by_rows(config):
    return config.model_copy(update={"packing": "rows"})


def shipped(name, **deepspeed):
    return settings(settings=str(INFRA / f"{name}.json"), **deepspeed)


def tensors(directory):
    """Policy, critic and the state of both optimizers."""
    files = sorted(directory.glob("policy/*.safetensors")) + sorted(directory.glob("optimizer/**/*.safetensors"))
    assert len(files) == 4
    return {f"{file.parent.name}/{name}": value for file in files for name, value in load_file(file).items()}


def assert_alike(directory, expected, steps):
    """Within 1e-5 a step, which is a hundredth of what a step moves a weight by."""
    found = tensors(directory)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name], value, atol=1e-5 * steps, rtol=0, msg=lambda it, name=name: f"{name}: {it}"
        )


@pytest.fixture(scope="module")
def paths(policy_path, samples_path):
    return {"policy": policy_path, "reference": policy_path, "batch": samples_path}


SHIPPED = ["zero0", "zero1", "zero2-offload", "zero2", "zero3", "zero3-offload"]


@pytest.fixture(scope="module")
def alone(paths, tmp_path_factory):
    """Three updates by one process, row by row: where it left them, and its metrics."""
    directory = tmp_path_factory.mktemp("alone") / "it"
    return directory, trained(directory, 1, by_rows(settings()), (0, 1, 2), **paths)


@pytest.mark.parametrize("name", mostly_soak(SHIPPED, "zero0", "zero2", "zero3-offload"))
def test_two_take_the_steps_of_one(name, paths, alone, policy_path, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "compiled"))
    metrics = trained(tmp_path / "two", 2, shipped(name), (0, 1, 2), **paths)
    expected = tensors(alone[0])
    assert_alike(tmp_path / "two", expected, steps=6)
    for mine, wanted in zip(metrics, alone[1], strict=True):
        rates = {"tokens_per_second"}
        assert {k: v for k, v in mine.items() if k not in rates} == pytest.approx(
            {k: v for k, v in wanted.items() if k not in rates}, abs=1e-5
        )
    start = load_file(policy_path / "model.safetensors")
    assert max(float((expected[f"policy/{name}"] - start[name]).abs().max()) for name in start) > 1e-3
    assert not (tmp_path / "compiled").exists()  # nothing needed a compiler


def test_one_process_reads_the_weights(paths, alone, tmp_path):
    """Every other process finds a file without weights, and still takes the steps of one."""
    hollow = tmp_path / "hollow"
    shutil.copytree(paths["policy"], hollow)
    (hollow / "model.safetensors").write_bytes(b"")
    trained(tmp_path / "two", 2, shipped("zero1"), (0, 1, 2), **paths, others=hollow)
    assert_alike(tmp_path / "two", tensors(alone[0]), steps=6)


@pytest.mark.parametrize("stage", mostly_soak([1, 2, 3], 3))
def test_two_train_adapters_and_recompute_activations_as_one_does_row_by_row(stage, policy, paths, tmp_path):
    torch.manual_seed(0)
    adapted = get_peft_model(
        copy.deepcopy(policy.model), LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM")
    )
    policy.model.save_pretrained(tmp_path / "base")
    adapted.peft_config["default"].base_model_name_or_path = str(tmp_path / "base")
    save(Policy(adapted, policy.tokenizer), tmp_path / "policy")
    paths = paths | {"policy": tmp_path / "policy", "reference": tmp_path / "policy"}
    trained(tmp_path / "one", 1, by_rows(settings()), (0, 1), **paths)
    trained(tmp_path / "two", 2, settings(zero_stage=stage, activation_checkpointing=True), (0, 1), **paths)
    assert_alike(tmp_path / "two", tensors(tmp_path / "one"), steps=4)


@pytest.mark.soak
def test_another_number_of_processes_and_stage_goes_on(paths, alone, tmp_path):
    trained(tmp_path / "three", 3, shipped("zero3"), (0,), **paths)
    middle = {"policy": tmp_path / "three" / "policy", "optimizer": tmp_path / "three" / "optimizer"}
    trained(tmp_path / "two", 2, shipped("zero1"), (1,), **paths | middle)
    last = {"policy": tmp_path / "two" / "policy", "optimizer": tmp_path / "two" / "optimizer"}
    trained(tmp_path / "one", 1, shipped("zero2"), (2,), **paths | last)
    assert_alike(tmp_path / "one", tensors(alone[0]), steps=6)


@pytest.mark.soak
def test_half_precision_keeps_its_master_weights_apart_from_stage_and_number(policy, paths, tmp_path):
    half = tmp_path / "half"
    save(Policy(copy.deepcopy(policy.model).bfloat16(), policy.tokenizer), half)
    paths = paths | {"policy": half, "reference": half}
    two = trained(tmp_path / "two", 2, shipped("zero3"), (0,), **paths)
    middle = {"policy": tmp_path / "two" / "policy", "optimizer": tmp_path / "two" / "optimizer"}
    trained(tmp_path / "one", 1, settings(), (), **paths | middle)
    before, after = tensors(tmp_path / "two"), tensors(tmp_path / "one")
    assert all(torch.equal(before[name], value) for name, value in after.items())
    assert {value.dtype for name, value in after.items() if name.startswith("optimizer/")} == {torch.float32}
    assert math.isfinite(two[0]["loss"])


def trainer(config, directory, policy):
    return Trainer(config, StartingPoint(policy, policy), temperature=TEMPERATURE, threads=1, log=directory / "log")


def gone(processes):
    _, alive = psutil.wait_procs(processes, timeout=60)
    return not alive


def test_launched_processes_answer_as_one_and_die_together(policy_path, samples_path, alone, tmp_path):
    with trainer(settings(processes=2), tmp_path, policy_path) as it:
        for number in range(3):
            metrics = it.update(samples_path, key(number)).metrics
        scores = it.score(samples_path, tmp_path / "scores")
        it.save(tmp_path / "policy", tmp_path / "optimizer")
        assert metrics["loss"] == pytest.approx(alone[1][-1]["loss"], abs=1e-5)
        assert list(map(len, scores.values)) == list(map(len, read(samples_path).completions))
        assert_alike(tmp_path, tensors(alone[0]), steps=6)
        ranks = {each.environ()["RANK"]: each for each in psutil.Process().children() if CHILD in command_of(each)}
        assert sorted(ranks) == ["0", "1"]
        assert ranks["0"].pid == it.pid
        os.kill(ranks["1"].pid, signal.SIGKILL)
        with pytest.raises(TrainerError, match=r"process 1 of the trainer's 2 died \(exit status -9\); see") as error:
            it.update(samples_path, key(3))
        assert "\n" not in str(error.value)
    assert gone(ranks.values())
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("trainer-")] == []


def test_several_end_with_a_parent_killed_in_an_update(paths, samples_path, alone, tmp_path):
    config = settings(processes=2)
    config = config.model_copy(update={"optimizer": OptimizerConfig(epochs=100_000)})
    command = [sys.executable, "-c", PARENT, config.model_dump_json()]
    command += map(str, (paths["policy"], samples_path, tmp_path))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout.readline().strip().isdigit(), (tmp_path / "log").read_text()
        started = psutil.Process(parent.pid).children(recursive=True)
        ranks = [each for each in started if CHILD in command_of(each)]
        assert len(ranks) == 2
        spent = sum(sum(each.cpu_times()[:2]) for each in ranks)
        while sum(sum(each.cpu_times()[:2]) for each in ranks) < spent + 0.5:  # in the update
            time.sleep(0.05)
        parent.kill()
        assert gone(started)
    start = load_file(paths["policy"] / "model.safetensors")
    assert all(
        torch.equal(value, start[name]) for name, value in load_file(tmp_path / "policy" / "model.safetensors").items()
    )
