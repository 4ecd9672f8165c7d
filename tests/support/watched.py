"""Runs for the tests of the live page: one with a drawn history, and pages over a workspace."""

import random
import socket
from contextlib import closing, contextmanager
from dataclasses import replace
from threading import Thread

import pyarrow.parquet as pq
import uvicorn
from support import small_run
from support.scheduled import wait_for

from coevo.configs.load.load import load_recipe
from coevo.flows.watch.index_build import RunIndex
from coevo.flows.watch.watch_app import WatchSite, watch_app
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.stats import tally
from coevo.records.arrow import episodes_to_table
from coevo.records.entry import entry_id
from coevo.records.episode import Completion, Episode, Turn
from coevo.records.task import Task

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

    def commit(self, change, played=None):
        here = self.revision
        if played is None:
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


TOKEN = "let me"
OWNED = "document.documentElement.dataset.owned = '1'"
HOSTILE = (
    f"<script>{OWNED}</script>",
    f"</script><script>{OWNED}</script>",
    f'"><img src=x onerror="{OWNED}">',
    f"' onfocus='{OWNED}' autofocus x='",
    f'<svg onload="{OWNED}"></svg>',
    f'<a href="javascript:{OWNED}">lesson</a>',
    f'<iframe srcdoc="<script>parent.{OWNED}</script>"></iframe>',
    '<form action="http://example.org/"><button>steal</button></form>',
    "<style>body { display: none }</style><base href='http://example.org/'>",
    "{{ 7 * 191 }} {% for x in y %}",
    "\u202egnp.exe\u202c \u2066hidden\u2069 zero\u200bwidth",
    "\x1b[31m\x00\x07\x08 &lt;b&gt;",
)
"""Texts that would act on a page that does not keep them from it."""
HOSTILE_TEXT = " ".join(HOSTILE)


def hostile_run(root):
    """A run whose lessons, tasks, prompts and answers hold these texts wherever text can stand."""
    run = DrawnRun(root, 0, "hostile")
    lesson = small_run.entry(HOSTILE_TEXT, HOSTILE_TEXT, HOSTILE_TEXT)
    lesson = replace(lesson, keywords=HOSTILE_TEXT, scope=HOSTILE_TEXT, id=entry_id(HOSTILE_TEXT, HOSTILE_TEXT))
    task = Task("homerules", HOSTILE_TEXT, HOSTILE_TEXT, HOSTILE_TEXT, "train", {"n": 1})
    completion = Completion((5, 6), (-0.1, -0.2), HOSTILE_TEXT, True)
    turn = Turn(HOSTILE_TEXT, (1, 2), completion, HOSTILE_TEXT, HOSTILE_TEXT, 0.0, False, (lesson.id,))
    turn = replace(turn, scores=((HOSTILE_TEXT, 0.5),))
    names = [Episode.name(1, "rollout-0", task, replica) for replica in range(2)]
    lesson = replace(lesson, sources=(names[0], HOSTILE_TEXT))
    played = [Episode(name, task, 1, number, (turn,), False, False) for number, name in enumerate(names)]
    played[1] = replace(played[1], lost=f"timeout: {HOSTILE_TEXT}")
    run.commit(BankChange(entries=(lesson,), judged=(small_run.judged(1, (lesson,), (1.0, 0.0, 1.0)),)), played)
    return run, lesson, task


def indexed(paths):
    """The run once its index is built."""
    RunIndex(paths).update()
    return paths


@contextmanager
def served(workspace, escaping=True):
    """URL of the pages of a workspace within the block, without the guard."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        app = watch_app(WatchSite(workspace, TOKEN, escaping))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        wait_for(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
