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
    """A run whose revisions do drawn operations on its bank, with the real stores.

    ``metrics``, ``state`` and ``staged`` (folders of artifacts) are added to each later commit.
    """

    def __init__(self, root, seed, name="drawn"):
        self.workspace, self.draws, self.numbers = Workspace(root), random.Random(seed), iter(range(1000))
        self.config = load_recipe(small_run.RECIPE, [])
        self.paths = self.workspace.create(name, self.config)
        self.bank = Bank(self.paths.bank)
        self.revision, self.metrics, self.state, self.staged = 0, {}, {}, {}
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
            "metrics": metrics | self.metrics,
        } | self.state
        staged = self.paths.staging / "episodes"
        staged.mkdir(parents=True)
        pq.write_table(episodes_to_table(played), staged / "episodes.parquet")
        observed = {"run": self.paths.name, "timestamp": here * 1000, "tables": self.bank.versions(), "metrics": {}}
        with Lineage.open(self.paths.lineage, self.workspace.cache) as lineage:
            lineage.commit({"episodes": staged} | self.staged, state, observed)
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
FRESH_TEXT = " ".join(
    (
        "${7*191} #{7*191} <%= 7*191 %> {{''.__class__.__mro__}} {%include '/etc/passwd'%} {# hidden #} [[7*191]]",
        f'<svg><animate onbegin="{OWNED}" attributeName=x><foreignObject><body onload="{OWNED}"></svg>',
        f"<svg><use href='data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg><script>{OWNED}</script>'/></svg>",
        f'<math><mtext><table><mglyph><style><img src onerror="{OWNED}"></style></mglyph></table></mtext></math>',
        "<style>@import url(http://example.org/a.css); a { background: url(data:text/css,x) }</style><link rel=x>",
        f"<a href='data:text/html,<script>{OWNED}</script>'>x</a><a href='vbscript:x'>y</a><meta http-equiv=refresh>",
        f'<details open ontoggle="{OWNED}"><input autofocus onfocus="{OWNED}"><object data=\'data:text/html,x\'>',
        "\u0085\u009b31m\u0090\u009f \u2028line\u2029paragraph \ufeffmark \u061c\u200e\u200f \u2067\u202dturned\u202e",
        "\U000e0041\U000e0042 \u00ad\u034f\ufff9\ufffa --> ]]> */ <!-- <![CDATA[ \u2066 \ud7ff \U0010ffff",
        "</title></textarea></pre></noscript></template></body></html><plaintext>",
    )
)
"""More of them: of templates, SVG and MathML, styles, addresses with data, C1 and other controls, ends of elements."""
LONG_TEXT = "\u202e" + "w" * 100_000


def hostile_run(root, text=HOSTILE_TEXT):
    """A run whose lessons, tasks, prompts and answers hold a text wherever text can stand."""
    run = DrawnRun(root, 0, "hostile")
    lesson = small_run.entry(text, text, text)
    lesson = replace(lesson, keywords=text, scope=text, id=entry_id(text, text))
    task = Task("homerules", text, text, text, "train", {"n": 1})
    completion = Completion((5, 6), (-0.1, -0.2), text, True)
    turn = Turn(text, (1, 2), completion, text, text, 0.0, False, (lesson.id,))
    turn = replace(turn, scores=((text, 0.5),))
    names = [Episode.name(1, "rollout-0", task, replica) for replica in range(2)]
    lesson = replace(lesson, sources=(names[0], text))
    played = [Episode(name, task, 1, number, (turn,), False, False) for number, name in enumerate(names)]
    played[1] = replace(played[1], lost=f"timeout: {text}")
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
