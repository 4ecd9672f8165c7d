"""Memory and disk by the size of the policy: peak of a save, the driver beside vLLM, and growth per revision.

Each figure is taken from the kernel: the peak of a process's memory after ``clear_refs``, and allocated blocks on the
disk. The optimizer counts as large at every size here, as it does at the size of real models.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import psutil

from benchmarks.bench import Bench, BenchResult
from benchmarks.update.trainer import WORDS, write_samples
from coevo.configs import sections
from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig, ScratchPolicyConfig
from coevo.configs.update.update_config import DeepSpeedConfig, UpdateConfig
from coevo.lineage.lineage import Lineage
from coevo.lineage.objects.cache import disk_usage
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.models.policy import policy as policies
from coevo.models.policy.language_model import Policy
from coevo.models.trainer.trainer_client import StartingPoint, Trainer
from coevo.records.draws import key
from coevo.tasks.commit import remove_superseded

SIZES = {"small": 128, "large": 768}
"""Hidden size by name: 0.9 and 27 million parameters."""
LAYERS, EVERY, REVISIONS, RANK = 4, 4, 12, 8
MIB = 2**20
DRIVER = """
import json, sys
from contextlib import closing
from pathlib import Path
import psutil
from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.configs.rollout.rollout_config import SamplingConfig
from coevo.models.engines.requests import Request
from coevo.models.engines.vllm.vllm_engine import VllmEngine
from coevo.records.draws import key
place = Path(sys.argv[1])
with closing(VllmEngine(place / "policy", VllmEngineConfig(type="vllm"), SamplingConfig(max_new_tokens=4),
                        place / "engine")) as engine:
    engine.generate([Request((5, 6, 7), key(0), "g")])
    engine.load(place / "policy")
    engine.generate([Request((5, 6, 7), key(0), "g")])
    status = Path("/proc/self/status").read_text()
print(json.dumps({line.split(":")[0]: int(line.split()[1]) * 1024 for line in status.splitlines() if "kB" in line}))
"""


def run(bench: Bench) -> None:
    """Measure what is missing and print it."""
    for name in SIZES:
        found = bench.cell(f"save-{name}", lambda name=name: save(bench, name))  # type: ignore[misc]
        print(
            f"\nsave of {found['parameters'] / 1e6:.1f}M weights in bfloat16: peak {found['peak'] / MIB:.0f} MiB above "
            f"what is held, {found['allowed'] / MIB:.0f} allowed"
        )
        driver = bench.cell(f"driver-{name}", lambda name=name: beside_vllm(bench, name))  # type: ignore[misc]
        print(f"driver beside vLLM: {driver['VmHWM'] / MIB:.0f} MiB at its peak")
    grown = bench.cell("growth", lambda: growth(bench, "small"))
    print(f"growth per revision {grown['growth']:.3f} bytes per weight, {grown['allowed']:.3f} allowed")
    adapters = bench.cell("growth-adapters", lambda: growth_of_adapters(bench, "large"))
    print(
        f"growth per revision of adapters {adapters['growth'] / 1e6:.2f} MB, of which a save writes "
        f"{adapters['saved'] / 1e6:.2f}; their base has {adapters['base'] / 1e6:.1f}"
    )


def save(bench: Bench, name: str) -> BenchResult:
    """Peak of the trainer's memory during a save, above what it held before."""
    place = _fresh(bench, name)
    policy = _policy(name, place, half=True)
    numbers = [parameter.numel() for parameter in policy.model.parameters()]
    write_samples(place / "samples.parquet", len(policy.tokenizer))
    with _trainer(place) as trainer:
        trainer.update(place / "samples.parquet", key(0))
        trainer.save(place / "first", place / "first-optimizer")  # the first use of a library counts for itself
        before = _held(trainer.pid)
        trainer.save(place / "second", place / "second-optimizer")
        peak = _memory(trainer.pid)["VmHWM"] - before
    return {"parameters": sum(numbers), "peak": peak, "allowed": max(sum(numbers), 4 * max(numbers))}


def growth(bench: Bench, name: str) -> BenchResult:
    """Bytes on disk per revision and weight over whole periods of ``lineage.optimizer_every``."""
    place = _fresh(bench, name)
    policy = _policy(name, place, half=True)
    with patch.object(sections, "LARGE_OPTIMIZER", 0):
        grown = _grown(place)
    numbers = sum(parameter.numel() for parameter in policy.model.parameters())
    return {"parameters": numbers, "growth": grown / numbers, "allowed": 2.05 + 12 / EVERY, "every": EVERY}


def growth_of_adapters(bench: Bench, name: str) -> BenchResult:
    """Bytes on disk per revision of adapters whose optimizer every revision keeps, beside the files of one save."""
    place = _fresh(bench, name)
    base = _policy(name, place, half=True)
    (place / "policy").rename(place / "base")
    lora = PretrainedPolicyConfig(type="pretrained", path=str(place / "base"), lora=LoraConfig(r=RANK, alpha=2 * RANK))
    policies.save(policies.build(lora, (), key("adapters")), place / "policy")
    grown = _grown(place)
    saved = sum(path.stat().st_size for part in ("policy", "optimizer") for path in _files(place / "last" / part))
    base_bytes = sum(parameter.numel() * parameter.element_size() for parameter in base.model.parameters())
    return {"base": base_bytes, "saved": saved, "growth": grown, "allowed": 1.05 * saved}


def _grown(place: Path) -> float:
    """Bytes per revision of updates of the policy in a directory, whose last save stays there as ``last``."""
    write_samples(place / "samples.parquet", len(policies.outline(place / "policy").tokenizer))
    workspace = Workspace(place / "workspace")
    paths = RunPaths(workspace.root / "runs" / "run")
    used = []
    with _trainer(place) as trainer, Lineage.open(paths.lineage, workspace.cache) as lineage:
        for revision in range(REVISIONS + 1):
            trainer.update(place / "samples.parquet", key(revision))
            staged = {part: paths.staging / part for part in ("policy", "optimizer")}
            trainer.save(staged["policy"], staged["optimizer"])
            if revision == REVISIONS:
                shutil.copytree(paths.staging, place / "last")
            lineage.commit(staged, _state(revision), {"tables": {}})
            remove_superseded(workspace, paths)
            used.append(disk_usage(workspace.cache, workspace.root / "runs"))
    return (used[REVISIONS] - used[REVISIONS - 2 * EVERY]) / (2 * EVERY)


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def beside_vllm(bench: Bench, name: str) -> BenchResult:
    """Memory of a process that generates with a vLLM server, through a load of new weights."""
    place = _fresh(bench, name)
    policy = _policy(name, place, half=False)
    done = subprocess.run(
        [sys.executable, "-P", "-c", DRIVER, str(place)], capture_output=True, text=True, check=False, cwd=place
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    memory: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return {
        "parameters": sum(parameter.numel() for parameter in policy.model.parameters()),
        **{field: memory[field] for field in ("VmHWM", "VmRSS", "RssAnon", "RssFile")},
    }


def _fresh(bench: Bench, name: str) -> Path:
    place = bench.workspace.root / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def _policy(name: str, place: Path, half: bool) -> Policy:
    hidden = SIZES[name]
    shape = ScratchPolicyConfig(
        hidden_size=hidden, layers=LAYERS, heads=hidden // 64, kv_heads=1, head_dim=64, intermediate_size=3 * hidden
    )
    policy = policies.build(shape, WORDS, key("policy"))
    policies.save(Policy(policy.model.bfloat16(), policy.tokenizer) if half else policy, place / "policy")
    return policy


def _trainer(place: Path) -> Trainer:
    config = UpdateConfig(deepspeed=DeepSpeedConfig(zero_stage=1, tokens=1024))
    start = StartingPoint(place / "policy", place / "policy")
    return Trainer(config, start, temperature=1.0, threads=1, log=place / "log")


def _state(revision: int) -> dict[str, object]:
    return {"iteration": revision, "tables": {}, "metrics": {}, "config": {"lineage": {"optimizer_every": EVERY}}}


def _held(pid: int) -> int:
    """Memory of a process now; its peak is counted from here."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="utf-8")
    return int(psutil.Process(pid).memory_info().rss)


def _memory(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if "kB" in line}
