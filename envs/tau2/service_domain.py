"""A domain of tau2-bench as the authors' files have it: tasks, their splits, policy and databases.

Files are read as data, with bounds, and never changed. What an agent must not see (assertions and reference actions of
a task) stays out of ``coevo.records.task.Task``.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from coevo.configs.rows_config import HELD_OUT, TRAIN
from coevo.envs.tau2.bench_checkout import JUDGED
from coevo.records.draws import key, seed_of
from coevo.utilities.errors import CoevoError

VARIABLE = "TAU2_BENCH_DIR"
SOURCE = "git clone https://github.com/sierra-research/tau2-bench"
MAX_BYTES = 2**26
"""Most bytes of a file."""
SMALL_HELD_OUT = 4
"""One of so many tasks of ``small``, which has no split of its own, is held out."""
DATABASES = {"telecom": ("db.toml", "user_db.toml"), "retail": ("db.json",), "airline": ("db.json",)}
POLICIES: Mapping[tuple[str, str, bool], tuple[str, ...]] = {
    ("telecom", "manual", True): ("main_policy_solo.md", "tech_support_manual.md"),
    ("telecom", "workflow", True): ("main_policy_solo.md", "tech_support_workflow_solo.md"),
    ("telecom", "manual", False): ("main_policy.md", "tech_support_manual.md"),
    ("telecom", "workflow", False): ("main_policy.md", "tech_support_workflow.md"),
    ("retail", "manual", False): ("policy.md",),
    ("airline", "manual", False): ("policy.md",),
}
"""Files of a policy, by domain, form and solo play."""
PARTS = ("main_policy", "tech_support_policy")
"""Tags around the two files of telecom's policy."""


class ReferenceAction(BaseModel):
    """A call of the reference solution of a task."""

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: dict[str, Any]


class _TaskCriteria(BaseModel):
    actions: list[ReferenceAction] | None = None
    reward_basis: list[str] = Field(default_factory=lambda: ["DB", "COMMUNICATE"])


class ServiceTask(BaseModel):
    """A task of the file; what is not listed here is read by the authors' code alone."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(min_length=1, max_length=1000)
    ticket: str | None = None
    evaluation_criteria: _TaskCriteria = _TaskCriteria()

    @property
    def kind(self) -> str:
        """Kind of telecom's fault, as ``mms_issue``; ``service`` for a task without one."""
        found = re.match(r"\[(\w+)\]", self.id)
        return found[1] if found else "service"

    @property
    def faults(self) -> int:
        """Faults that a telecom task combines."""
        return self.id.count("|") + 1

    @property
    def is_judged(self) -> bool:
        """True if a part of its reward is judged: without one, whatever an agent does would solve it."""
        return bool(JUDGED & set(self.evaluation_criteria.reward_basis))

    @property
    def solution(self) -> tuple[ReferenceAction, ...]:
        """Calls of the reference solution, in order."""
        return tuple(self.evaluation_criteria.actions or ())


_TASKS = TypeAdapter(list[ServiceTask])
_SPLITS = TypeAdapter(dict[str, list[str]])


@dataclass(frozen=True)
class ServiceDomain:
    """A domain.

    Attributes:
        tasks: tasks by id, in the order of the file.
        splits: ids of the tasks that train, and of those that are held out.
        policy: policy of the agent, as the authors' code joins its files.
        databases: content of each database file.
        digest: SHA-256 (hex) of tasks, splits, policy and databases.
        left_out: tasks of the splits of which no part of the reward is judged.
    """

    tasks: Mapping[str, ServiceTask]
    splits: Mapping[str, tuple[str, ...]]
    policy: str
    databases: Mapping[str, Any]
    digest: str
    left_out: int = 0


def checkout_folder(path: str | None, given: str) -> Path:
    """Folder of the checkout.

    Args:
        path: that of the settings.
        given: that of the environment variable; empty for none.

    Raises:
        CoevoError: there is none.
    """
    folder = Path(path or given)
    if not (path or given) or not (folder / "data" / "tau2" / "domains").is_dir():
        named = f"{folder} is no checkout of tau2-bench" if path or given else "there is no checkout of tau2-bench"
        raise CoevoError(f"env.path: {named}: {SOURCE}, and set {VARIABLE} or env.path to its folder")
    return folder.absolute()


def read_domain(folder: Path, domain: str, tasks: str, policy: str, solo: bool) -> ServiceDomain:
    """Read a domain of a checkout.

    Args:
        folder: the checkout.
        domain: name of the domain.
        tasks: ``base`` or ``small``.
        policy: form of the policy.
        solo: True for the policy of solo play.

    Raises:
        CoevoError: a file is missing, has another form, or no task of a split is judged.
    """
    there = folder / "data" / "tau2" / "domains" / domain
    listed, names = there / ("tasks.json" if tasks == "base" else "tasks_small.json"), there / "split_tasks.json"
    texts = [_text(there / name) for name in POLICIES[domain, policy, solo]]
    databases = {name: _database(there / name) for name in DATABASES[domain]}
    found = {each.id: each for each in _checked(_TASKS, listed)}
    every = _splits(found, _checked(_SPLITS, names), tasks, names)
    splits = {split: tuple(name for name in ids if found[name].is_judged) for split, ids in every.items()}
    empty = next((split for split, ids in splits.items() if every[split] and not ids), None)
    if empty is not None:
        raise CoevoError(f"{listed}: no task of {empty} has a reward_basis that is judged: {', '.join(sorted(JUDGED))}")
    played = {name for ids in splits.values() for name in ids}
    return ServiceDomain(
        {name: each for name, each in found.items() if name in played},
        splits,
        _joined(texts),
        databases,
        _digest([*texts, *databases.values(), splits, _told(listed, played)]),
        sum(map(len, every.values())) - len(played),
    )


def _splits(
    tasks: Mapping[str, ServiceTask], named: Mapping[str, list[str]], wanted: str, path: Path
) -> dict[str, tuple[str, ...]]:
    """Ids that train, and those that are held out, sorted."""
    if wanted == "small":
        held_out = {name for name in tasks if seed_of(key("tau2", "small", name)) % SMALL_HELD_OUT == 0}
        return {TRAIN: tuple(sorted({*tasks} - held_out)), HELD_OUT: tuple(sorted(held_out))}
    missing = next((name for name in ("train", "test") if not named.get(name)), None)
    if missing is not None:
        raise CoevoError(f"{path}: it has no split {missing!r}: take a checkout of October 2025 or later")
    found = {TRAIN: tuple(sorted(set(named["train"]))), HELD_OUT: tuple(sorted(set(named["test"])))}
    lost = next((name for ids in found.values() for name in ids if name not in tasks), None)
    if lost is not None or set(found[TRAIN]) & set(found[HELD_OUT]):
        reason = "a task is in both splits" if lost is None else f"it has no {lost[:100]!r}"
        raise CoevoError(f"{path}: tasks.json does not fit it ({reason}): check tau2-bench out anew")
    return found


def _joined(texts: list[str]) -> str:
    """The policy as one text, as the authors' code gives it to an agent."""
    if len(texts) == 1:
        return texts[0]
    return "\n".join(f"<{part}>\n{text}\n</{part}>" for part, text in zip(PARTS, texts, strict=True))


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CoevoError(f"{path}: it cannot be read ({error.strerror}): check tau2-bench out anew") from None
    if len(found) > MAX_BYTES:
        raise CoevoError(f"{path}: it has more than {MAX_BYTES} bytes: check tau2-bench out anew")
    return found


def _text(path: Path) -> str:
    try:
        return _bytes(path).decode()
    except UnicodeDecodeError as error:
        raise CoevoError(f"{path}: it is no UTF-8 ({error}): check tau2-bench out anew") from None


def _database(path: Path) -> Any:
    text = _text(path)
    try:
        return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CoevoError(f"{path}: it is no database ({str(error)[:100]}): check tau2-bench out anew") from None


def _checked(form: TypeAdapter[Any], path: Path) -> Any:
    try:
        return form.validate_json(_bytes(path))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise CoevoError(f"{path}: {place or 'it'}: {problem['msg']}: check tau2-bench out anew") from None


def _told(path: Path, played: set[str]) -> list[Any]:
    """Whole content of the tasks that are played, sorted by id."""
    every = json.loads(_bytes(path))
    return sorted((each for each in every if each["id"] in played), key=lambda each: str(each["id"]))


def _digest(content: list[Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
