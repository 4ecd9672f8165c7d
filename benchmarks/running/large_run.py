"""A run whose bank is large, made with the real stores but without a policy: four revisions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from coevo.configs.load.load import load_recipe
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.stats import Stats
from coevo.records.entry import Entry, entry_id

RECIPE = "homerules-coevo-rl"
WORDS = 3000
SCOPES = 16


def build(workspace: Workspace, name: str, entries: int) -> RunPaths:
    """Make the run: revision 1 admits all entries, 2 edits and adds some, 3 counts most of them."""
    config = load_recipe(RECIPE, [])
    paths = workspace.create(name, config)
    bank = Bank(paths.bank)
    shared = {"config": config.model_dump(mode="json"), "config_hash": config.digest(), "code": "c" * 64, "metrics": {}}
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        for revision, change in enumerate(changes(entries)):
            bank.merge(change)
            state = {"iteration": revision, "fired": revision, "accepted_change": [], "panels": {}, "outcomes": {}}
            observed = {"run": name, "tables": bank.versions(), "metrics": {}}
            lineage.commit(_stage(paths, revision), {**shared, **state, "tables": bank.hashes()}, observed)
    return paths


def changes(entries: int) -> Iterator[BankChange]:
    """Rows that each revision merges."""
    first = [entry(number, 1) for number in range(entries)]
    yield BankChange()
    yield BankChange(tuple(first), tuple(Stats(each.id) for each in first))
    added = [entry(entries + number, 2) for number in range(100)]
    yield BankChange((*edited(first[: entries // 100], 2), *added))
    yield BankChange(stats=counted(first[: entries * 9 // 10], 3))


def entry(number: int, revision: int) -> Entry:
    """One lesson of a few words; the number decides which."""
    scope = f"house{number % SCOPES}"
    words = [f"word{word}" for word in np.random.default_rng(number).integers(0, WORDS, 4)]
    text = f"in {scope} the {words[0]} {words[1]} is kept in {words[2]}, place {number}"
    sources = (f"{revision}/rollout-{number % 40}/task/0", f"{revision}/rollout-{number % 40}/task/1")
    keywords = f"{scope} {words[0]} {words[1]}"
    return Entry(
        entry_id(scope, text), text, words[3], "go safe", keywords, scope, "train", sources, revision, revision
    )


def edited(entries: Sequence[Entry], revision: int) -> tuple[Entry, ...]:
    """The same lessons with a longer text."""
    return tuple(replace(each, strategy=f"{each.strategy}, at r{revision}", edited=revision) for each in entries)


def counted(entries: Sequence[Entry], revision: int) -> tuple[Stats, ...]:
    """Counters after some more retrievals."""
    return tuple(Stats(each.id, revision + number % 50, number % 3) for number, each in enumerate(entries))


def _stage(paths: RunPaths, revision: int) -> dict[str, Path]:
    directory = paths.staging / "policy"
    directory.mkdir(parents=True)
    (directory / "weights").write_text(f"policy of {revision}", encoding="utf-8")
    return {"policy": directory}
