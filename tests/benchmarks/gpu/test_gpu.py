"""The benchmark for GPUs: one line where there is none, and its way through an update at a tiny size."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from benchmarks.bench import ROOT, Bench
from benchmarks.gpu import gpu, updates
from benchmarks.gpu.cases import Case
from coevo.configs.load.load import load_recipe
from coevo.configs.policy_config import LoraConfig, ShapeConfig
from coevo.lineage.workspace import Workspace

TINY = ShapeConfig(
    architecture="qwen3", vocabulary=256, hidden_size=32, layers=2, heads=4, kv_heads=2, head_dim=8,
    intermediate_size=48, max_positions=64, tied=True,
)  # fmt: skip
CASE = Case(TINY, None, 8, 12, 4, 0.0, 200)


def test_without_a_gpu_it_says_so_in_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    gpu.run(Bench(tmp_path / "cells", Workspace(tmp_path / "workspace")))
    assert capsys.readouterr().out == "gpu: this machine has no GPU; nothing was measured\n"
    assert not (tmp_path / "cells").exists()


def test_what_there_is_no_time_for_is_skipped_and_said(tmp_path, capsys, monkeypatch):
    bench, skipped = Bench(tmp_path, Workspace(tmp_path / "workspace")), []
    monkeypatch.setattr(gpu, "MINUTES", 0)
    gpu._part(bench, "update", 60.0, dict, 0.0, skipped)
    assert "update" in skipped[0]
    assert capsys.readouterr().out == ""


def test_the_models_are_those_of_the_names():
    sizes = {name: gpu.CASES[name].shape for name in gpu.CASES}
    assert (sizes["update-0.6b-full"].layers, sizes["update-4b-lora"].hidden_size) == (28, 2560)
    assert all(case.rows * (case.prompt + case.answer) == 16_384 for case in gpu.CASES.values())


def test_the_iteration_is_a_valid_run(tmp_path):
    config = load_recipe("homerules-grpo", [*gpu.settings(tmp_path), "iterations=1"])
    assert (config.placement.type, config.rollout.engine.type) == ("shared", "vllm")


REST = "dvc fastapi great_expectations lance lancedb mlflow pandas prefect sklearn sqlalchemy typer vllm"


@pytest.mark.soak
def test_updates_are_measured_without_the_other_packages():
    code = f"""import sys
for name in "{REST}".split():
    sys.modules[name] = None
import benchmarks.gpu.updates, coevo.models.trainer.child, coevo.models.trainer.training_session"""
    subprocess.run([sys.executable, "-P", "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)


@pytest.mark.full
@pytest.mark.parametrize("case", [CASE, replace(CASE, lora=LoraConfig(r=2, alpha=2))], ids=["full", "lora"])
def test_an_update_is_measured_in_a_real_trainer(case, tmp_path):
    found = updates.measure(case, "cpu", tmp_path / "place")
    assert found["tokens"] == 128
    assert found["tokens_per_second"] > 0
    assert 0 < found["mfu"] < 1
    assert not (tmp_path / "place").exists()
