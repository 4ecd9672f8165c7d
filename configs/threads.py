"""CPU threads of a run: chosen once, when the run is created, and kept with its settings.

Results may differ in the last bits between numbers of threads, so the number is part of a run's identity. It follows
from what the machine grants to this process, never from how busy the machine is.
"""

import os
from pathlib import Path

from coevo.configs.base import MAX_PROCESSES
from coevo.configs.rollout.rollout_config import TransformersEngineConfig
from coevo.configs.run_config import RunConfig

GROUPS = Path("/sys/fs/cgroup")
"""Folder of the control groups, where a container has its share of the processors."""


def with_threads(config: RunConfig) -> RunConfig:
    """The configuration with the number of threads that its run keeps; a number that it sets itself stays.

    ``OMP_NUM_THREADS`` decides, up to the usable cores. Without it a pretrained policy in this process has all of them,
    divided among its trainer's processes; every other run has one: on small models threads only wait for each other,
    and servers and GPUs do the work elsewhere.
    """
    rollout, engine = config.rollout, config.rollout.engine
    if "threads" in engine.model_fields_set:
        return config
    wanted, cores = _wanted(), usable_cores()
    if wanted is None:
        alone = config.policy.type == "pretrained" and isinstance(engine, TransformersEngineConfig)
        wanted = cores // (1 if config.update is None else config.update.deepspeed.processes) if alone else 1
    chosen = engine.model_copy(update={"threads": max(1, min(wanted, cores, MAX_PROCESSES))})
    return config.model_copy(update={"rollout": rollout.model_copy(update={"engine": chosen})})


def usable_cores(groups: Path = GROUPS) -> int:
    """Number of cores that this process may use: those of its affinity, up to the quota of its control group."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(there, int(_quota(groups))))


def _wanted() -> int | None:
    """Number of threads that ``OMP_NUM_THREADS`` asks for, of the outermost level; None without a number above 0."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isascii() and first.isdecimal() and len(first) < 10 and int(first) else None


def _quota(groups: Path) -> float:
    """The smallest quota of the control group and those above it, in cores; ``MAX_PROCESSES`` without one."""
    found = float(MAX_PROCESSES)
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        number, controllers, cgroup = [*line.split(":", 2), "", ""][:3]
        if number != "0" and "cpu" not in controllers.split(","):
            continue
        root = groups if number == "0" else groups / "cpu"
        inner = Path(cgroup.lstrip("/"))
        for folder in {root / inner, *(root / above for above in inner.parents)}:
            found = min(found, _share(folder))
    return found


def _share(folder: Path) -> float:
    """Quota of one control group, of either version, in cores; ``MAX_PROCESSES`` without one."""
    words = _read(folder / "cpu.max").split() or [
        _read(folder / name).strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    ]
    if len(words) != 2 or not all(word.isdecimal() for word in words) or not int(words[1]):
        return float(MAX_PROCESSES)
    return int(words[0]) / int(words[1])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
