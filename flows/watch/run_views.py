"""Values of the template of each page of a run. Figures are those of the readers that commands use."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from coevo.flows.history.stored_episodes import REASONS, TRAINING, played_again, reasons_of, turn_rows
from coevo.flows.history.success import held_out_success, training_success
from coevo.flows.history.verdicts import credit_row, ruling_row, verdict_row
from coevo.flows.watch.index_build import SERIES, UNREADABLE
from coevo.flows.watch.index_queries import PAGE_ROWS, IndexReader, IndexRow
from coevo.flows.watch.watched_run import WatchedRun
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.retention import earlier
from coevo.lineage.status import waits
from coevo.memory.bank.bank import BankView
from coevo.records.entry import Entry
from coevo.records.failure_reasons import LessonUse
from coevo.tasks.bank_alone.bank_reader import SIMILAR as LEAST_SIMILARITY
from coevo.tasks.bank_alone.bank_reader import contradict, gains_of
from coevo.tasks.publish.alarms import alarms
from coevo.tasks.publish.turn_figures import MAX_FILES, TurnFigures, read_turn_figures
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.records.episode import Episode

PageQuery = Mapping[str, str]
PageValues = dict[str, Any]
HELD_OUT = "held-out"
"""Episodes of panels, in an address."""
SIMILAR = 5
"""Most similar entries on a card."""
MAX_ALIKE = 20
"""Most similar entries that are looked at for a contradiction."""
MAX_GROUPS = 60
"""Most tasks of a page of episodes."""
HEALTH = (
    ("entries", "bank/size"), ("admitted", "bank/admitted"), ("rejected", "bank/rejected"), ("retired", "bank/retired"),
    ("share never in a prompt", "bank/retrieval/never_share"), ("tasks that find a lesson", "bank/retrieval/task_hits"),
    ("median episodes per entry", "bank/retrieval/count_median"), ("share admitted", "bank/admitted_share"),
    ("firings in a row without a change", "bank/firings_without_change"),
    ("replay difference", "bank/replay/difference"), ("replay low", "bank/replay/low"),
    ("replay high", "bank/replay/high"),
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
UNMEASURED: PageValues = {"seconds": None, "lesson_scores": ()}
"""Figures of a turn of which none were kept."""
SUCCESS = "agent/success/"
HISTOGRAM = "policy/advantage_histogram/from_"
"""Metrics with the number of episodes whose advantage lies in a bin, by its lower edge."""


def overview(run: WatchedRun, reader: IndexReader, query: PageQuery) -> PageValues:
    """The run at a revision: success, update, cost, settings, health of the bank, alarms."""
    manifest, row = reader.manifest(), reader.row()
    before = reader.manifest(row["predecessor"]) if row["predecessor"] is not None else None
    panels = [
        (name.removeprefix(SUCCESS), value)
        for name, value in manifest.metrics.items()
        if name.startswith(SUCCESS) and name != f"{SUCCESS}train"
    ]
    return {
        "row": row,
        "train": training_success(manifest),
        "held": held_out_success(manifest),
        "panels": panels,
        "best": reader.best(),
        "alarms": alarms(manifest, earlier(reader.manifest, manifest)),
        "update": _named(UPDATE, manifest, before),
        "advantages": _advantages(manifest),
        "health": _named(HEALTH, manifest, before),
        "expenses": [asdict(each) for each in reader.expenses()],
        "settings": run.settings(manifest),
        "recipe": manifest.state["config"].get("recipe", ""),
        "faults": reader.faults(),
        "series": SERIES,
    }


def _advantages(manifest: Manifest) -> list[IndexRow]:
    """Bins of the distribution of advantages, the lowest first."""
    names = (name for name in manifest.metrics if name.startswith(HISTOGRAM))
    edges = {name: name.removeprefix(HISTOGRAM) for name in names}
    rows = [
        {"from": float(edge), "episodes": int(manifest.metrics[name])}
        for name, edge in edges.items()
        if re.fullmatch(r"-?\d{1,3}\.\d", edge, re.ASCII)
    ]
    return sorted(rows, key=lambda row: row["from"])


def _named(names: Iterable[tuple[str, str]], manifest: Manifest, before: Manifest | None) -> list[IndexRow]:
    old = {} if before is None else before.metrics
    return [
        {"name": shown, "value": manifest.metrics[name], "before": old.get(name)}
        for shown, name in names
        if name in manifest.metrics
    ]


def curve(reader: IndexReader) -> PageValues:
    """Success and series over the revisions as columns, for the figures."""
    rows = reader.curve()
    names = ["revision", "train", "train_low", "train_high", "held", "held_low", "held_high", "bank"]
    names += [name for name in SERIES if any(row.get(name) is not None for row in rows)]
    return {"revision": reader.revision, "columns": {name: [row.get(name) for row in rows] for name in names}}


def revisions(run: WatchedRun, reader: IndexReader, query: PageQuery) -> PageValues:
    """The values of the figures as a table."""
    rows = reader.curve()
    return {"rows": rows, "names": [name for name in SERIES if any(row.get(name) is not None for row in rows)]}


def bank(run: WatchedRun, reader: IndexReader, query: PageQuery) -> PageValues:
    """The bank, and what changed in it against another revision."""
    page, scope = number(query, "page") or 0, query.get("scope") or None
    since = number(query, "from")
    since = reader.row()["predecessor"] if since is None else min(since, reader.last)
    text, unread = query.get("q", "")[:200], bool(query.get("unread"))
    found = reader.entries.page(text, scope, page, unread)
    return {
        "found": found,
        "groups": [(scope, list(rows)) for scope, rows in groupby(found.rows, key=lambda row: row["scope"])],
        "since": since,
        "changes": None if since is None else reader.entries.changes(since),
        "q": text,
        "unread": unread,
        "scope": scope,
        "page": page,
        "pages": -(-found.total // PAGE_ROWS),
        "has_bank": reader.manifest().state["config"]["bank"] is not None,
        "unknown": reader.lacks_bank(),
    }


def lesson(run: WatchedRun, reader: IndexReader, query: PageQuery, name: str) -> PageValues:
    """The card of an entry."""
    spans = reader.entries.spans(name)
    if not spans:
        raise CoevoError(f"entry {name!r} is not in the bank of {run.name}, nor was it")
    known = [span for span in spans if span["since"] <= reader.revision] or spans[:1]
    now, active = known[-1], known[-1]["until"] is None or known[-1]["until"] > reader.revision
    entry = _entry(now)
    life, alike = reader.entries.life(entry), reader.entries.similar(now, MAX_ALIKE)
    made = reader.manifest(min(entry.created, reader.last))
    page = {
        "entry": now,
        "unknown": reader.lacks_bank(),
        "active": active and known[-1]["since"] <= reader.revision,
        "spans": spans,
        "life": life,
        "gain": life.interval,
        "beside": [(life.expected + gain) / life.compared for gain in (life.gain, 0.0)]
        if life.compared
        else [None] * 2,
        "uses": reader.entries.uses(name),
        "similar": alike[:SIMILAR],
        "contradicting": [],
        "sources": [(source, reader.episodes.source(source)) for source in entry.sources],
        "writer": (made.state["config"]["bank"] or {}).get("writer", {}).get("type", ""),
        "verdicts": [],
        "credits": [],
        "rulings": [],
        "answers": [],
        "missing": "",
    }
    try:
        page |= _judged(run, reader, entry, alike)
        decode = run.decoder()
        for each in run.answers(made, entry.sources):
            drawn = each.reply.drawn
            page["answers"].append((each, None if drawn is None else decode(drawn.prompt_ids)))
    except UNREADABLE as error:
        page["missing"] = " ".join(str(error).split())
    return page


def _entry(row: IndexRow) -> Entry:
    fields = {field: row[field] for field in Entry.__dataclass_fields__}
    return Entry(**fields | {"sources": tuple(row["sources"])})


def _judged(run: WatchedRun, reader: IndexReader, entry: Entry, alike: Sequence[tuple[float, IndexRow]]) -> PageValues:
    bank = run.bank(reader.manifest())
    judged, left_out, rulings = bank.about(entry.id)
    history = {each.verdict.revision: reader.manifest(each.verdict.revision) for each in judged}
    return {
        "verdicts": [verdict_row(each, history) for each in judged],
        "credits": [credit_row(each) for each in left_out],
        "rulings": [ruling_row(each) for each in rulings],
        "contradicting": _contradicting(bank, entry, gains_of([*judged, *left_out]), alike),
    }


def _contradicting(
    bank: BankView, entry: Entry, gain: Mapping[str, float], alike: Sequence[tuple[float, IndexRow]]
) -> list[IndexRow]:
    """Similar entries whose gain by replay has the other sign, with both gains, as the health report has them."""
    if entry.id not in gain:
        return []
    found = list[IndexRow]()
    for score, row in alike:
        if score < LEAST_SIMILARITY:
            continue
        judged, left_out, _ = bank.about(row["id"])
        gains = {**gain, **gains_of([*judged, *left_out])}
        if contradict(entry, _entry(row), gains):
            found.append({**row, "similarity": score, "gain": gains[row["id"]], "own": gains[entry.id]})
    return found


def episodes(run: WatchedRun, reader: IndexReader, query: PageQuery) -> PageValues:
    """Episodes of a revision by task, chosen by panel, kind, outcome, reason and lesson."""
    panels = reader.episodes.panels()
    panel = query.get("set", "")
    panel = panel if panel in panels else next((each for each in panels if each != TRAINING), TRAINING)
    wanted = {name: query.get(name, "") for name in ("kind", "reason", "use", "lesson", "outcome")}
    every = reader.episodes.chosen(panel, {}) if panels else []
    rows = reader.episodes.chosen(panel, wanted) if any(wanted.values()) and panels else every
    groups = [(task, list(group)) for task, group in groupby(rows, key=lambda row: (row["task"], row["instruction"]))]
    page = number(query, "page") or 0
    return {
        "panels": panels,
        "panel": panel,
        "training": panel == TRAINING,
        "wanted": wanted,
        "kinds": sorted({row["kind"] for row in every}),
        "reasons": REASONS,
        "lesson_uses": [str(each) for each in LessonUse],
        "counts": reasons_of(rows),
        "total": len(rows),
        "solved": sum(row["success"] for row in rows),
        "groups": groups[page * MAX_GROUPS : (page + 1) * MAX_GROUPS],
        "tasks": len(groups),
        "page": page,
        "pages": -(-len(groups) // MAX_GROUPS),
        "latest": {name: reader.episodes.revisions(name == TRAINING)[:1] for name in (TRAINING, HELD_OUT)},
    }


def group(run: WatchedRun, reader: IndexReader, query: PageQuery, task: str) -> PageValues:
    """Episodes of one task side by side: its group of training, or with and without the bank on the same draws."""
    rows = [
        row for panel in reader.episodes.panels() for row in reader.episodes.chosen(panel, {}) if row["task"] == task
    ]
    again = played_again(run.paths, reader.revision, task)
    if not (rows or again):
        raise CoevoError(f"task {task!r} was not played in {run.name}@{reader.revision}")
    manifest, stored = reader.manifest(), dict[str, tuple["Episode", str, str, str]]()
    for training in (True, False):
        ids = {row["id"] for row in rows if (row["panel"] == TRAINING) == training}
        if ids:
            stored |= run.episodes(manifest, training, ids)
    shown = [(row, turn_rows(stored[row["id"]][0])) for row in rows]
    shown += [(_played_row(*each), turn_rows(each[0])) for each in again]
    read = [any(turn["lessons"] for turn in turns) for _, turns in shown]
    sides = [
        (title, [each for each, reads in zip(shown, read, strict=True) if reads == which])
        for title, which in (("with lessons in the prompt", True), ("without", False))
    ]
    return {
        "sides": [(title, side, _share(side)) for title, side in sides if side],
        "task": shown[0][0],
        "panel": rows[0]["panel"] if rows else TRAINING,
        "read": read[0],
    }


def _played_row(episode: "Episode", panel: str, reason: str) -> IndexRow:
    """Row of an episode that an evaluation played, which has no page of its own."""
    task = episode.task
    return {
        "panel": panel, "number": None, "replica": episode.replica, "success": episode.success,
        "reward": episode.reward, "reason": reason, "task": task.id, "instruction": task.instruction,
        "kind": task.kind, "scope": task.scope,
    }  # fmt: skip


def _share(side: Sequence[tuple[IndexRow, Sequence[IndexRow]]]) -> str:
    return f"{sum(row['success'] for row, _ in side)} of {len(side)} solved"


def episode(run: WatchedRun, reader: IndexReader, query: PageQuery, kind: str, position: int) -> PageValues:
    """One episode, turn by turn, with its prompts."""
    training = kind == TRAINING
    row = reader.episodes.at(training, position) if kind in (TRAINING, HELD_OUT) and position < 1 << 31 else None
    if row is None:
        raise CoevoError(f"{run.name}@{reader.revision} keeps no {kind} episode {position}")
    found = run.episodes(reader.manifest(), training, [row["id"]])
    played, panel, reason, use = found[row["id"]]
    decode = run.decoder()
    texts = reader.entries.texts(sorted({entry for turn in played.turns for entry in turn.retrieved}), training)
    turns = [
        told | {"prompt": decode(turn.prompt_ids), "finished": turn.completion.finished} | UNMEASURED
        for told, turn in zip(turn_rows(played), played.turns, strict=True)
    ]
    figures = read_turn_figures(run.paths, row["revision"], row["id"])
    spent = [each.seconds for each in figures if each.seconds is not None]
    if len(figures) == len(turns):
        turns = [turn | _figures(turn, known) for turn, known in zip(turns, figures, strict=True)]
    tokens = sum(turn["prompt_tokens"] + turn["answer_tokens"] for turn in turns)
    return {
        "row": row, "episode": played, "panel": panel, "reason": reason, "use": use, "turns": turns, "texts": texts,
        "tokens": tokens, "kind": kind, "seconds": sum(spent) if len(spent) == len(turns) else None,
        "measured": len(figures) == len(turns), "most_measured": MAX_FILES,
    }  # fmt: skip


def _figures(turn: PageValues, known: TurnFigures) -> PageValues:
    """Seconds of a turn, and the score of each lesson in its prompt."""
    matched = len(known.scores) == len(turn["lessons"])
    return {"seconds": known.seconds, "lesson_scores": known.scores if matched else ()}


def approval(run: WatchedRun, reader: IndexReader, query: PageQuery) -> PageValues:
    """The proposal that waits for a person's decision, if one does."""
    head = reader.manifest(reader.last)
    if not waits(head):
        return {"waiting": False, "text": "", "head": head}
    from coevo.flows.pending import page

    return {"waiting": True, "text": page(run.name, run.workspace), "head": head}


def number(query: PageQuery, name: str) -> int | None:
    """A number of an address; None where it is none."""
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else None
