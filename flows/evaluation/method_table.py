"""Tables in the papers' shape: a row per method, mean and interval over seeds, beside GRPO and a frozen policy.

A value of a seed is its mean over tasks, and of a task the mean over its samples (avg@k). A row is the mean over seeds,
with Student's 95 % interval over them: tasks are no sample of what another seed would give. A table without a row that
trains without memory (GRPO), or without a frozen policy with a bank, is refused: either may explain a method's gain.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Any

from coevo.configs.load.load import load_recipe
from coevo.configs.load.pairing import Pairing, load_pairing, parts_of
from coevo.configs.load.shipped_files import names, shipped
from coevo.configs.policy_config import EndpointPolicyConfig
from coevo.configs.run_config import RunConfig, digest
from coevo.flows.evaluation.sample_results import pass_at
from coevo.lineage.revision.code_version import flat
from coevo.records.intervals import ROUNDING, Interval, of_mean, student
from coevo.utilities.errors import CoevoError

GRPO, FROZEN = "no memory", "frozen with a bank"
ROLES = {GRPO: ("grpo", "GRPO without a bank"), FROZEN: ("experience-only", "a frozen policy with a bank")}
"""Rows that every table has: a method that makes one, and what it is."""
VARYING = ("seed", "world")
"""Settings of a run and of its environment that may differ between the seeds of a row."""
LABELS = 3
"""Most settings in the label of a row."""


@dataclass(frozen=True, slots=True)
class TaskScore:
    """Samples of one task, without those that the environment lost.

    Attributes:
        kind: kind of the task.
        successes: whether each succeeded.
        rewards: undiscounted return of each.
        lengths: number of turns of each.
    """

    kind: str
    successes: tuple[bool, ...]
    rewards: tuple[float, ...]
    lengths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScoredPanel:
    """A panel as one policy has played it: one seed of a row.

    Attributes:
        name: where it is from: ``RUN@N``, or a file and a bank.
        config: settings of the run that trained the policy.
        bank: bank that it played with: ``own``, ``none`` or another.
        panel: name of the panel.
        panel_hash: hash of its tasks.
        samples: episodes per task.
        scores: by id of the task.
        is_run: the policy is that of a run, so that its settings say how it was trained.
    """

    name: str
    config: RunConfig
    bank: str
    panel: str
    panel_hash: str
    samples: int
    scores: Mapping[str, TaskScore]
    is_run: bool = True

    @property
    def unit(self) -> tuple[int, int]:
        """Seed of the run, and seed of its world."""
        return self.config.seed, int(getattr(self.config.env, "world", 0))

    @property
    def role(self) -> str | None:
        """Which of the rows that every table has; None for another."""
        update = self.config.update
        if not self.is_run:
            return None
        if update is not None and self.config.bank is None and update.advantage.type == "grpo":
            return GRPO if self.bank in ("own", "none") else None
        return FROZEN if update is None and self.config.bank is not None and self.bank == "own" else None

    @property
    def policy(self) -> str:
        """Hash of the model, whatever is trained of it."""
        return digest(self.config.policy.model_dump(mode="json", exclude={"lora", "dtype", "shape"}))

    def values(self) -> dict[str, float]:
        """Means over tasks by column; success and score in percent."""
        found = {"success": self._mean("successes"), "score": self._mean("rewards"), "length": self._mean("lengths")}
        found = {name: value if name == "length" else 100 * value for name, value in found.items()}
        whole = [task.successes for task in self.scores.values() if len(task.successes) >= self.samples]
        if self.samples > 1 and whole:
            found["pass"] = 100 * fmean(pass_at(len(each), sum(each), self.samples) for each in whole)
        for kind in sorted({task.kind for task in self.scores.values()}):
            found[f"kind/{kind}"] = 100 * self._mean("successes", kind)
        return found

    def _mean(self, what: str, kind: str | None = None) -> float:
        return fmean(fmean(getattr(task, what)) for task in self.scores.values() if kind in (None, task.kind))


@dataclass(frozen=True, slots=True)
class MethodRow:
    """A row: one method over its seeds.

    Attributes:
        method: its label.
        role: which of the rows that every table has; None for another.
        policy: hash of its model.
        seeds: seeds of its runs and of their worlds.
        sources: where each is from.
        values: values over the seeds by column, in their order.
    """

    method: str
    role: str | None
    policy: str
    seeds: tuple[tuple[int, int], ...]
    sources: tuple[str, ...]
    values: Mapping[str, tuple[float, ...]]

    def cells(self) -> dict[str, dict[str, float | None]]:
        """Mean and 95 % interval over the seeds, by column; one seed, and equal ones, have no interval."""
        return {name: _cell(of_mean(each) if _differ(each) else None, each) for name, each in self.values.items()}


@dataclass(frozen=True, slots=True)
class MethodTable:
    """A table of one environment and panel."""

    environment: str
    panel: str
    tasks: int
    samples: int
    rows: tuple[MethodRow, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def kinds(self) -> list[str]:
        """Kinds of tasks, by name; none where all tasks are of one kind."""
        found = sorted({name for row in self.rows for name in row.values if name.startswith("kind/")})
        return [name.removeprefix("kind/") for name in found] if len(found) > 1 else []

    @property
    def columns(self) -> list[str]:
        """Columns besides the kinds."""
        return ["success", *(["pass"] if self.samples > 1 else []), "score", "length"]

    def differences(self) -> Iterator[dict[str, Any]]:
        """Success of each method minus that of the rows beside it, paired by seed, in percent."""
        for row in self.rows:
            others = [] if row.role else [each for each in self.rows if each.role and each.policy == row.policy]
            for other in others:
                shared = sorted(set(row.seeds) & set(other.seeds))
                ours, theirs = ([_of(each, seed) for seed in shared] for each in (row, other))
                if shared:
                    gains = [a - b for a, b in zip(ours, theirs, strict=True)]
                    found = student(ours, theirs) if _differ(gains) else None
                    about = {"method": row.method, "against": other.method, "role": other.role, "seeds": len(shared)}
                    yield about | _cell(found, gains)

    def document(self) -> dict[str, Any]:
        """The table as JSON values."""
        rows = [{**asdict(row), "values": row.cells()} for row in self.rows]
        about = {"environment": self.environment, "panel": self.panel, "tasks": self.tasks, "samples": self.samples}
        return {**about, "rows": rows, "differences": list(self.differences()), "notes": list(self.notes)}


def _differ(values: Sequence[float]) -> bool:
    """True if percentages differ by more than rounding does: equal ones have no spread, and would look certain."""
    return max(values) - min(values) > 100 * ROUNDING


def _of(row: MethodRow, seed: tuple[int, int]) -> float:
    return row.values["success"][row.seeds.index(seed)]


def _cell(found: Interval | None, values: Sequence[float]) -> dict[str, float | None]:
    low, high = (None, None) if found is None else (found.low, found.high)
    return {"mean": fmean(values), "low": low, "high": high}


def method_table(played: Sequence[ScoredPanel]) -> MethodTable:
    """The table of what was played.

    Raises:
        CoevoError: it is of several environments or panels, of other tasks or numbers of samples, has a seed twice, or
            lacks a row that every table has.
    """
    _check_same(played)
    groups: dict[str, list[ScoredPanel]] = {}
    for each in played:
        groups.setdefault(_method(each), []).append(each)
    labels = _labels([group[0] for group in groups.values()])
    rows = [_row(label, group) for label, group in zip(labels, groups.values(), strict=True)]
    lacks = [_lack(each, role) for each, role in _missing(played, rows)]
    if lacks:
        raise CoevoError(f"A table has rows beside each method that this one lacks: {'; '.join(lacks)}")
    rows.sort(key=lambda row: (*ROLES, None).index(row.role))
    first = played[0]
    return MethodTable(
        first.config.env.type, first.panel, len(first.scores), first.samples, tuple(rows), tuple(_notes(rows))
    )


def _check_same(played: Sequence[ScoredPanel]) -> None:
    first, tasks = played[0], dict[int, ScoredPanel]()
    for each in played:
        for what in ("panel", "samples"):
            if getattr(each, what) != getattr(first, what):
                ours, theirs = getattr(first, what), getattr(each, what)
                raise CoevoError(f"{first.name} has {what} {ours}, and {each.name} {theirs}: make a table of each")
        if each.config.env.type != first.config.env.type:
            named = f"{first.name} plays {first.config.env.type}, and {each.name} {each.config.env.type}"
            raise CoevoError(f"{named}: make a table of each")
        same = tasks.setdefault(each.unit[1], each)
        if same.panel_hash != each.panel_hash:
            raise CoevoError(f"{same.name} and {each.name} play other tasks of {each.panel}: evaluate them on the same")
        if not each.scores:
            raise CoevoError(f"{each.name}: the environment lost all episodes: evaluate it again")


def _method(each: ScoredPanel) -> str:
    """Hash of all settings but the seeds, and of the bank that it plays with."""
    settings = each.config.model_dump(mode="json", exclude={"python_path", "recipe"})
    settings = {name: value for name, value in settings.items() if name not in VARYING}
    settings["env"] = {name: value for name, value in settings["env"].items() if name not in VARYING}
    return digest([settings, each.config.recipe, each.bank])


def _labels(firsts: Sequence[ScoredPanel]) -> list[str]:
    """Label of each row: its method or recipe, with settings where several rows have the same."""
    pairings = [parts_of(each.config.recipe) for each in firsts]
    models = {parts and (parts[0], parts[2]) for parts in pairings}
    short = None not in models and len(models) == 1
    found = [parts[1] if short and parts else each.config.recipe for parts, each in zip(pairings, firsts, strict=True)]
    banks = ["" if each.bank == "own" else f", bank {each.bank}" for each in firsts]
    flats = [flat(each.config.model_dump(mode="json")) for each in firsts]
    labels = []
    for name, bank, settings in zip(found, banks, flats, strict=True):
        same = [other for label, other in zip(found, flats, strict=True) if label == name]
        differ = [key for key in settings if any(_differs(key, settings, other) for other in same)]
        told = [f" {key}={json.dumps(settings[key])}" for key in differ]
        labels.append(f"{name}{''.join(told[:LABELS])}{bank}")
    return labels


def _differs(key: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """True for a setting that two rows have and that is another; of a section, whether it is there."""
    if key.rpartition(".")[2] in VARYING:
        return False
    if key in theirs:
        return bool(theirs[key] != ours[key])
    return ours[key] is None and any(each.startswith(f"{key}.") for each in theirs)


def _row(label: str, group: Sequence[ScoredPanel]) -> MethodRow:
    ordered = sorted(group, key=lambda each: each.unit)
    for one, other in pairwise(ordered):
        if one.unit == other.unit:
            raise CoevoError(f"{one.name} and {other.name} are the same method and seed: leave one out")
    found = [each.values() for each in ordered]
    columns = [name for name in found[0] if all(name in each for each in found)]
    values = {name: tuple(each[name] for each in found) for name in columns}
    seeds, sources = tuple(each.unit for each in ordered), tuple(each.name for each in ordered)
    return MethodRow(label, ordered[0].role, ordered[0].policy, seeds, sources, values)


def _missing(played: Sequence[ScoredPanel], rows: Sequence[MethodRow]) -> Iterator[tuple[ScoredPanel, str]]:
    """Rows that are missing beside each model, with one of what has it."""
    for policy in dict.fromkeys(each.policy for each in played):
        there = {row.role for row in rows if row.policy == policy}
        like = next(each for each in played if each.policy == policy)
        yield from ((like, role) for role in ROLES if role not in there)


def _lack(like: ScoredPanel, role: str) -> str:
    return f"{ROLES[role][1]}: {baseline_command(like.config, like.panel, role)}"


def baseline_command(config: RunConfig, panel: str, role: str) -> str:
    """Command that runs a row that is missing, in the environment and with the model of a run, on the same panel."""
    method = ROLES[role][0]
    recipe = f"{config.env.type}-{method}"
    if parts_of(config.recipe) is None and config.policy.type == "scratch" and recipe in names("recipes"):
        words, made = [recipe], load_recipe(recipe)
    else:
        pairing, policy = _pairing(config, method), config.policy
        named = [f"policy.model={policy.model}"] if isinstance(policy, EndpointPolicyConfig) else []
        if named and role == GRPO:
            return "none, a model behind an endpoint is not trained: use one with weights"
        words = ["--env", pairing.env, "--method", method, "--model", pairing.model, *named]
        made = load_pairing(pairing, named, registered=[pairing.env])
    ours, theirs = (flat(each.model_dump(mode="json", include={"env"})) for each in (config, made))
    settings = [f"{key}={json.dumps(value)}" for key, value in ours.items() if theirs.get(key) != value]
    if made.evaluation.tasks != config.evaluation.tasks:
        settings.append(f"evaluation.tasks={config.evaluation.tasks}")
    if panel not in made.evaluation.panels:
        settings.append(f"evaluation.panels=[{panel}]")
    return shlex.join(["coevo", "run", *words, f"seed={config.seed}", *settings])


def _pairing(config: RunConfig, method: str) -> Pairing:
    """Pairing of a method with the environment and the model of a run."""
    parts, policy = parts_of(config.recipe), config.policy
    if policy.type == "scratch":
        model = "scratch"
    else:
        model = policy.url if policy.type == "endpoint" else policy.path
        model = parts[2] if parts and parts[2] in shipped("models") else model
    return Pairing(parts[0] if parts and parts[0] in shipped("envs") else config.env.type, method, model)


def _notes(rows: Sequence[MethodRow]) -> Iterator[str]:
    """Notes for the reader of a table."""
    single = [row.method for row in rows if len(row.seeds) == 1]
    if single:
        yield f"no interval over seeds, which one run has not: {', '.join(single)}"
    for row in rows:
        for other in rows:
            lacking = sorted(set(row.seeds) - set(other.seeds))
            if other.role and not row.role and other.policy == row.policy and lacking:
                seeds = ", ".join(str(seed) for seed, _ in lacking)
                yield f"{other.method} has no run of {row.method}'s seeds {seeds}: differences are over the others"
