"""Runs for the tests of the live page: one with a drawn history, and pages over a workspace."""

import random
from dataclasses import replace

import pyarrow.parquet as pq
from support import small_run

from coevo.configs.load.load import load_recipe
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.stats import tally
from coevo.records.arrow import episodes_to_table

OPERATIONS = ("admit", "admit", "edit", "retire", "readmit", "recount", "nothing", "rollback", "mixed")


class DrawnRun:
    """A run whose revisions do drawn operations on its bank, with the real stores."""

    def __init__(self, root, seed, name="drawn"):
        self.workspace, self.draws, self.numbers = Workspace(root), random.Random(seed), iter(range(1000))
        self.config = load_recipe(small_run.RECIPE, [])
        self.paths = self.workspace.create(name, self.config)
        self.bank = Bank(self.paths.bank)
        self.revision = 0
        self.commit(BankChange())

    def step(self):
        """Commit a revision that does a drawn operation."""
        operation = self.draws.choice(OPERATIONS)
        if operation == "rollback" and self.revision > 2:
            with Lineage.open(self.paths.lineage, self.workspace.cache) as lineage:
                self.revision = lineage.rollback(self.draws.randrange(self.revision), self.bank).revision + 1
            return
        kinds = ("admit", "edit", "retire") if operation == "mixed" else (operation,)
        changed = {}
        for kind in kinds:
            for each in self.changed(kind):
                changed.setdefault(each.id, each)
        self.commit(BankChange(entries=tuple(changed.values())))

    def changed(self, kind):
        """Entries as an operation leaves them."""
        here, entries = self.revision, self.bank.entries()
        active = [each for each in entries if each.active]
        gone = [each for each in entries if not each.active]
        if kind == "admit":
            return [small_run.entry(f"lesson {next(self.numbers)}", "mug", "go", here) for _ in range(3)]
        if kind == "readmit" and gone:
            return [replace(self.draws.choice(gone), created=here, edited=here, retired=-1)]
        if kind == "retire" and active:
            return [replace(self.draws.choice(active), retired=here)]
        if kind == "edit" and active:
            return [replace(self.draws.choice(active), strategy=f"edited at {here}", edited=here)]
        if kind == "recount" and active:  # a change of a row without a mark of it
            return [replace(self.draws.choice(active), sources=(f"{here}/rollout-0/x/0",))]
        return []

    def commit(self, change):
        here = self.revision
        seen = self.draws.sample(self.bank.active(), min(2, self.bank.size()))
        played = small_run.episodes(here, seen) if here else []
        self.bank.merge(replace(change, stats=tally(self.bank.stats(), played)))
        metrics = {"agent/success/train": 0.5, "agent/success_stderr/train": 0.1, "bank/size": float(self.bank.size())}
        state = {
            "iteration": here,
            "fired": here,
            "config": self.config.model_dump(mode="json"),
            "config_hash": self.config.digest(),
            "code": "c" * 64,
            "accepted_change": [],
            "tables": self.bank.hashes(),
            "panels": {},
            "outcomes": {},
            "metrics": metrics,
        }
        staged = self.paths.staging / "episodes"
        staged.mkdir(parents=True)
        pq.write_table(episodes_to_table(played), staged / "episodes.parquet")
        observed = {"run": self.paths.name, "timestamp": here * 1000, "tables": self.bank.versions(), "metrics": {}}
        with Lineage.open(self.paths.lineage, self.workspace.cache) as lineage:
            lineage.commit({"episodes": staged}, state, observed)
        self.revision += 1
