"""Values of the template of each page of a run. Figures are those of the readers that commands use."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from coevo.flows.evaluation.comparison import settings_beside
from coevo.flows.history.stored_episodes import turn_rows
from coevo.flows.history.success import held_out_success, training_success
from coevo.flows.history.verdicts import ruling_row
from coevo.flows.watch.entry_queries import IndexRow
from coevo.flows.watch.index_build import SERIES
from coevo.flows.watch.index_queries import IndexReader
from coevo.flows.watch.watched_run import WatchedRun
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.retention import earlier
from coevo.lineage.status import waits
from coevo.records.intervals import of_share
from coevo.tasks.publish.alarms import alarms
from coevo.utilities.errors import CoevoError

PageQuery = Mapping[str, str]
PageValues = dict[str, Any]
RETRIEVAL = "bank/retrieval/"
HEALTH = (
    ("entries", "bank/size"), ("candidates admitted", "bank/admitted"), ("candidates rejected", "bank/rejected"),
    ("entries retired", "bank/retired"), ("share of entries that no training episode read", RETRIEVAL + "never_share"),
    ("lessons that a task finds, mean number", RETRIEVAL + "task_hits"),
    ("training episodes per entry, median", RETRIEVAL + "count_median"),
    ("share of candidates admitted", "bank/admitted_share"),
    ("firings in a row without a change", "bank/firings_without_change"),
    ("replay: reward with the candidates minus without", "bank/replay/difference"),
    ("replay: low end of its 95 % interval", "bank/replay/low"),
    ("replay: high end of its 95 % interval", "bank/replay/high"),
)  # fmt: skip
"""Health of the bank: name on the page, metric."""
UPDATE = (
    ("KL per token to the reference", "policy/update/kl"), ("entropy", "policy/update/entropy"),
    ("gradient norm", "policy/update/grad_norm"), ("share of clipped tokens", "policy/update/clip_share"),
    ("mismatch of engine and trainer, mean", "policy/update/mismatch_mean"),
    ("mismatch, 99th percentile", "policy/update/mismatch_p99"), ("loss", "policy/update/loss"),
    ("share of groups without variance", "policy/advantage/zero_variance_share"),
    ("advantage, standard deviation", "policy/advantage/std"), ("advantage, least", "policy/advantage/min"),
    ("advantage, greatest", "policy/advantage/max"), ("tokens", "policy/update/tokens"),
)  # fmt: skip
"""Figures of an update: name on the page, metric."""
TITLES = {metric: title for title, metric in (*HEALTH, *UPDATE)}
"""Names on the pages of metrics."""
COUNTS = ("bank/size", "bank/admitted", "bank/rejected", "bank/retired", "bank/firings_without_change",
          "policy/update/tokens")  # fmt: skip
"""Metrics that are whole numbers."""
SUCCESS = "agent/success/"
ZEROED = ("grpo", "mean", "rloo")
"""Estimators that give each episode of a group without variance the advantage 0."""
MAX_OTHERS = 3
"""Most other runs that a comparison is named with."""
HISTOGRAM = "policy/advantage_histogram/from_"
"""Metrics with the number of episodes whose advantage lies in a bin, by its lower edge."""


def overview(run: WatchedRun, reader: IndexReader, query: PageQuery) -> PageValues:
    """The run at a revision: success, update, cost, settings, health of the bank, alarms."""
    manifest, row = reader.manifest(), reader.row()
    before = reader.manifest(row["predecessor"]) if row["predecessor"] is not None else None
    return {
        "row": row,
        "commands": _commands(run, reader, row),
        "decided": any(word in row["what"] for word in ("admitted", "rejected")),
        "train": training_success(manifest),
        "held": held_out_success(manifest),
        "panels": _panels(manifest),
        "best": reader.best(),
        "alarms": alarms(manifest, earlier(reader.manifest, manifest)),
        "update": _named(UPDATE, manifest, before),
        "advantages": _advantages(manifest),
        "health": _named(HEALTH, manifest, before),
        "expenses": [asdict(each) for each in reader.expenses()],
        "settings": _settings_that_differ(manifest),
        "recipe": manifest.state["config"].get("recipe", ""),
        "faults": reader.faults(),
        "series": [(name, TITLES[name]) for name in SERIES],
    }


def _settings_that_differ(manifest: Manifest) -> list[tuple[str, object, object]]:
    """Settings of a revision that differ from its recipe: name, value here, value there."""
    config = manifest.state["config"]
    return list(_settings(json.dumps(config, sort_keys=True), str(config.get("recipe", ""))))


@cache
def _settings(config: str, recipe: str) -> tuple[tuple[str, object, object], ...]:
    here: Mapping[str, Any] = json.loads(config)
    try:
        found = settings_beside("run", here, recipe)
    except CoevoError:
        return ()
    return tuple((name, sides.get("run", "–"), sides.get(recipe, "–")) for name, sides in found.items())


def _panels(manifest: Manifest) -> list[IndexRow]:
    """Success on each panel, with its 95 % interval over the tasks that were not lost."""
    found = list[IndexRow]()
    for name, value in manifest.metrics.items():
        panel = name.removeprefix(SUCCESS)
        if panel in (name, "train"):
            continue
        marks = str(manifest.state.get("outcomes", {}).get(panel, "")).replace("-", "")
        bounds = of_share(value, len(marks)) if marks else None
        found.append({"panel": panel, "success": value, "bounds": bounds, "tasks": len(marks) or None})
    return found


def _commands(run: WatchedRun, reader: IndexReader, row: IndexRow) -> list[tuple[str, str]]:
    """Commands for this run, each with what it answers."""
    at, before = f"{run.name}@{reader.revision}", row["predecessor"]
    found = list[tuple[str, str]]()
    if before is not None:
        found += [
            (f"coevo explain {at} --since {before}", "why success changed: tasks drawn, policy or bank, beyond noise?"),
            (f"coevo bank diff {run.name}@{before} {at}", "what changed in the bank"),
        ]
    others = [paths.name for paths in run.workspace.directories() if paths.name != run.name]
    found += [
        (f"coevo compare {at} {other} --evaluate", "settings, success and cost beside another run, at equal expense")
        for other in others[:MAX_OTHERS]
    ]
    found += [
        (f"coevo bank log {at} --revision {reader.revision}", "candidates that were judged here, and why"),
        (f'coevo bank search {at} "WORDS OF A TASK" --scope SCOPE', "lessons that a task would find"),
        (f"coevo bank health {at}", "near-duplicates, and lessons that contradict each other"),
        (f"coevo evaluate {at} --bank own --bank none", "success with and without the bank, on the same draws"),
        (f"coevo log {at}", "all revisions; whether success ever fell beyond noise"),
        (f"coevo fsck {run.name}", "whether all that is stored is intact"),
    ]
    best = reader.best(besides=reader.revision)
    if best is not None:
        told = f"go back to the revision with the best held-out success besides this one, {best['held']:.3f}"
        found.append((f"coevo rollback {run.name} --to {best['revision']}", told))
    return found


def _advantages(manifest: Manifest) -> list[IndexRow]:
    """Bins of the distribution of advantages, the lowest first; exact zeros of groups without variance have a row."""
    names = (name for name in manifest.metrics if name.startswith(HISTOGRAM))
    edges = {name: name.removeprefix(HISTOGRAM) for name in names}
    rows: list[IndexRow] = [
        {"from": float(edge), "title": f"from {edge}", "episodes": int(manifest.metrics[name])}
        for name, edge in edges.items()
        if re.fullmatch(r"-?\d{1,3}\.\d", edge, re.ASCII)
    ]
    zeros = _zeros(manifest, rows)
    for row in rows:
        if zeros and row["from"] == 0:
            row |= {"title": "above 0", "episodes": row["episodes"] - zeros}
    rows += [{"from": -0.0001, "title": "exactly 0, groups without variance", "episodes": zeros}] if zeros else []
    return sorted(rows, key=lambda row: row["from"])


def _zeros(manifest: Manifest, rows: Sequence[IndexRow]) -> int:
    """Episodes whose advantage is 0 since their group had no variance of reward; 0 where that cannot be told."""
    update = manifest.state["config"].get("update") or {}
    share = manifest.metrics.get("policy/advantage/zero_variance_share")
    if share is None or (update.get("advantage") or {}).get("type") not in ZEROED:
        return 0
    zeros = round(share * sum(row["episodes"] for row in rows))
    return zeros if any(row["from"] == 0 and row["episodes"] >= zeros for row in rows) else 0


def _named(names: Iterable[tuple[str, str]], manifest: Manifest, before: Manifest | None) -> list[IndexRow]:
    old = {} if before is None else before.metrics
    return [
        {"name": shown, "value": _counted(name, manifest.metrics[name]), "before": _counted(name, old.get(name))}
        for shown, name in names
        if name in manifest.metrics
    ]


def _counted(metric: str, value: float | None) -> float | None:
    return int(value) if value is not None and metric in COUNTS and value == int(value) else value


def curve(reader: IndexReader) -> PageValues:
    """Success and series over the revisions as columns, for the figures."""
    rows = reader.curve()
    names = ["revision", "train", "train_low", "train_high", "held", "held_low", "held_high", "bank"]
    names += [name for name in SERIES if any(row.get(name) is not None for row in rows)]
    return {"revision": reader.revision, "columns": {name: [row.get(name) for row in rows] for name in names}}


def revisions(run: WatchedRun, reader: IndexReader, query: PageQuery) -> PageValues:
    """The values of the figures as a table."""
    rows = reader.curve()
    names = [(name, TITLES[name]) for name in SERIES if any(row.get(name) is not None for row in rows)]
    return {"rows": rows, "names": names}


def approval(run: WatchedRun, reader: IndexReader, query: PageQuery) -> PageValues:
    """The proposal that waits for a person's decision, if one does."""
    head = reader.manifest(reader.last)
    if not waits(head):
        return {"waiting": False, "head": head}
    from coevo.flows.pending import proposed_changes

    pending, found, sampled = proposed_changes(run.name, run.workspace)
    return {
        "waiting": True,
        "head": head,
        "changes": {"new": found.added, "changed": [new for _, new in found.edited], "gone": found.retired},
        "judged": [(each, each.verdict.requirement) for each in pending.decision.judged],
        "rulings": [ruling_row(each) for each in pending.decision.operations],
        "episodes": [(each, turn_rows(each)) for each in sampled],
    }


def number(query: PageQuery, name: str) -> int | None:
    """A number of an address; None where it is none."""
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else None
