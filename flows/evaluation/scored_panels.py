"""Panels that were played, read for a table: held-out episodes of a run's revision, or a file of ``coevo evaluate``."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from coevo.configs.load.load import validate
from coevo.configs.run_config import RunConfig
from coevo.flows.evaluation.method_table import ScoredPanel, TaskScore
from coevo.flows.history import history
from coevo.flows.history.revision_reference import WRITTEN, Reading, Reference, reading
from coevo.flows.history.stored_episodes import stored_episodes
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

MAX_LINE_BYTES = 2**28
"""Most bytes of an episode in a file of results."""
OF_TRAINING = ("iterations", "update", "warmstart", "approval", "schedule")
"""Settings that only the run has that trained the policy, not what it was evaluated with."""
Sample = tuple[str, str, bool, float, int]
"""Id and kind of a task, success, return and number of turns of one episode."""


def scored_panels(text: str, panel: str | None, workspace: Workspace) -> list[ScoredPanel]:
    """Panels that ``RUN[@N]`` or a file of results was evaluated on; a file has one for each of its banks.

    Args:
        text: a run at its last evaluated revision, a revision, or a file of ``coevo evaluate --output``.
        panel: name of the panel; by default the first that the run evaluates on, or that of the file.
        workspace: the workspace.

    Raises:
        CoevoError: it does not exist, was not evaluated on the panel, or does not hold all of its episodes.
    """
    return _of_file(Path(text), workspace) if text.endswith(".jsonl") else [_of_run(text, panel, workspace)]


def _of_run(text: str, panel: str | None, workspace: Workspace) -> ScoredPanel:
    with reading(text, workspace) as latest:
        opened = latest
        if Reference.parse(text).revision is None and (last := history.evaluated(latest.history)) is not None:
            opened = Reading(latest.paths, latest.lineage, latest.history[: last.revision + 1])
        config, manifest = opened.config, opened.manifest
        name = panel or config.evaluation.panels[0]
        outcomes = manifest.state["outcomes"].get(name)
        if outcomes is None:
            known = ", ".join(manifest.state["outcomes"]) or "nothing"
            raise CoevoError(f"{opened.name} was not evaluated on {name}, but on {known}: choose another --panel")
        episodes = [episode for episode, where, *_ in stored_episodes(opened, training=False) if where == name]
        if len(episodes) < len(outcomes):
            raise CoevoError(
                f"{opened.name} keeps {len(episodes)} of the {len(outcomes)} episodes of {name} (lineage.held_out): "
                f"play them into a file: coevo evaluate {opened.name} --panel {name} --samples 1 --output FILE.jsonl"
            )
        found = [(e.task.id, e.task.kind, e.success, e.reward, len(e.turns)) for e in episodes if not e.lost]
        return ScoredPanel(opened.name, config, "own", name, manifest.state["panels"][name], 1, _tasks(found))


def _tasks(samples: Iterable[Sample]) -> dict[str, TaskScore]:
    """Samples by task."""
    grouped: dict[str, list[Sample]] = {}
    for each in samples:
        grouped.setdefault(each[0], []).append(each)
    return {
        task: TaskScore(own[0][1], tuple(s[2] for s in own), tuple(s[3] for s in own), tuple(s[4] for s in own))
        for task, own in grouped.items()
    }


def _of_file(path: Path, workspace: Workspace) -> list[ScoredPanel]:
    about = _about(path)
    try:
        banks, settings = list(about["banks"]), dict(about["settings"])
        target, panel, digest = str(about["target"]), str(about["panel"]), str(about["panel_hash"])
        samples, expected = int(about["samples"]), int(about["tasks"]) * int(about["samples"])
    except (KeyError, TypeError, ValueError):
        raise _damaged(path) from None
    config, is_run = _config(path, target, settings, workspace)
    rows = list(_rows(path))
    panels = []
    for bank in banks:
        own = [sample for where, sample in rows if where == bank]
        if len(own) != expected:
            raise CoevoError(f"{path} has {len(own)} of {expected} episodes of bank {bank}: evaluate with --resume")
        tasks = _tasks(sample for sample in own if sample is not None)
        panels.append(ScoredPanel(f"{path} ({bank})", config, bank, panel, digest, samples, tasks, is_run))
    return panels


def _about(path: Path) -> Mapping[str, Any]:
    """Settings and sizes that stand beside a file of results."""
    try:
        found = json.loads(path.with_suffix(".json").read_bytes())
    except OSError:
        raise CoevoError(
            f"{path}: {path.with_suffix('.json').name} is not beside it: name a file that `coevo evaluate` has finished"
        ) from None
    except (ValueError, RecursionError):
        raise _damaged(path) from None
    if not isinstance(found, dict):
        raise _damaged(path)
    return found


def _config(path: Path, target: str, settings: dict[str, Any], workspace: Workspace) -> tuple[RunConfig, bool]:
    """Settings of an evaluation, with those of the run that trained its policy, and whether there is such a run."""
    trained: dict[str, Any] = {"iterations": 0, "update": None, "warmstart": None}
    is_run = _is_run(target, workspace)
    if is_run:
        with reading(target, workspace) as opened:
            run = opened.config.model_dump(mode="json")
        trained = {name: run[name] for name in OF_TRAINING if name in run}
    return validate({**settings, **trained}, source=str(path)), is_run


def _is_run(target: str, workspace: Workspace) -> bool:
    found = WRITTEN.fullmatch(target)
    try:
        return found is not None and workspace.run(found["run"]).created.is_file()
    except CoevoError:  # the path of a model is no name of a run
        return False


def _rows(path: Path) -> Iterator[tuple[str, Sample | None]]:
    """Bank of each episode, and what a table needs of it; None for one that the environment lost."""
    try:
        with path.open("rb") as file:
            for line in iter(partial(file.readline, MAX_LINE_BYTES), b""):
                row = json.loads(line)
                bank, lost = str(row["bank"]), bool(row["lost"])
                numbers = bool(row["success"]), float(row["reward"]), len(row["turns"])
                if not math.isfinite(numbers[1]):
                    raise _damaged(path)
                yield bank, None if lost else (str(row["task"]), str(row["kind"]), *numbers)
    except OSError as error:
        raise CoevoError(f"{path}: {error.strerror}: name a file of results") from None
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        raise _damaged(path) from None


def _damaged(path: Path) -> CoevoError:
    return CoevoError(f"{path}: it or the file beside it is no result of `coevo evaluate`: evaluate anew")
