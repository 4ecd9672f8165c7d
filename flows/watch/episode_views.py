"""Values of the templates of the pages about episodes: those of a revision, one task side by side, one turn by turn."""

import json
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from coevo.flows.history.played_episodes import PLAYED, Played, played_again, played_at
from coevo.flows.history.stored_episodes import REASONS, TRAINING, reasons_of, turn_rows
from coevo.flows.watch.entry_queries import IndexRow
from coevo.flows.watch.index_queries import HELD_OUT, IndexReader
from coevo.flows.watch.run_views import PageQuery, PageValues, number
from coevo.flows.watch.watched_run import WatchedRun
from coevo.records.failure_reasons import MEANINGS, LessonUse
from coevo.tasks.publish.turn_figures import MAX_FILES, TurnFigures, read_turn_figures
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.records.episode import Episode

MAX_QUERY_CHARS = 200
"""Most characters of a condition of an address."""
MAX_NAMED = 20
"""Most lessons that a page of episodes lists."""
MAX_GROUPS = 60
"""Most tasks of a page of episodes."""
UNMEASURED: PageValues = {"seconds": None, "lesson_scores": ()}
"""Figures of a turn of which none were kept."""


def episodes(run: WatchedRun, reader: IndexReader, query: PageQuery) -> PageValues:
    """Episodes of a revision by task, chosen by panel, kind, outcome, reason and lesson."""
    panels = reader.episodes.panels()
    held = [each for each in panels if each != TRAINING]
    sets = {each: [each] for each in panels} | ({HELD_OUT: held} if len(held) > 1 else {})
    panel = query.get("set", "")
    panel = panel if panel in sets else next(iter(held), TRAINING)
    wanted = {name: query.get(name, "")[:MAX_QUERY_CHARS] for name in ("kind", "reason", "use", "lesson", "outcome")}
    text = wanted["lesson"].strip()
    named = reader.entries.named(text) if text else []
    every = reader.episodes.chosen(panel, {}) if panels else []
    chosen = wanted | {"lesson": json.dumps(named) if text else ""}
    rows = reader.episodes.chosen(panel, chosen) if any(chosen.values()) and panels else every
    success = reader.episodes.success()
    groups = [(task, list(group)) for task, group in groupby(rows, key=lambda row: (row["task"], row["instruction"]))]
    page = number(query, "page") or 0
    return {
        "sets": [*sets],
        "panel": panel,
        "meanings": MEANINGS,
        "named": [spans[-1] for name in named[:MAX_NAMED] if (spans := reader.entries.spans(name))],
        "unnamed": bool(text) and not named,
        "by_set": [{"set": name} | _total(success, panels) for name, panels in sets.items()],
        "by_kind": [
            {"kind": kind} | _total([row for row in success if row["kind"] == kind], sets.get(panel, []))
            for kind in sorted({row["kind"] for row in every})
        ],
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


def _total(success: Sequence[IndexRow], panels: Sequence[str]) -> IndexRow:
    """Episodes and successes of some panels."""
    rows = [row for row in success if row["panel"] in panels]
    episodes, solved = (sum(row[name] for row in rows) for name in ("episodes", "solved"))
    share = solved / episodes if episodes else None
    return {"episodes": episodes, "solved": solved, "failed": episodes - solved, "success": share}


def group(run: WatchedRun, reader: IndexReader, query: PageQuery, task: str) -> PageValues:
    """Episodes of one task side by side: its group of training, or with and without the bank on the same draws."""
    rows = [
        row | {"address": (TRAINING if panel == TRAINING else HELD_OUT, row["number"]), "again": []}
        for panel in reader.episodes.panels()
        for row in reader.episodes.chosen(panel, {})
        if row["task"] == task
    ]
    again = sorted(played_again(run.paths, reader.revision, task), key=lambda played: played.side)
    if not (rows or again):
        raise CoevoError(f"task {task!r} was not played in {run.name}@{reader.revision}")
    manifest, stored = reader.manifest(), dict[str, tuple["Episode", str, str, str]]()
    for training in (True, False):
        ids = {row["id"] for row in rows if (row["panel"] == TRAINING) == training}
        if ids:
            stored |= run.episodes(manifest, training, ids)
    shown = [_Shown(row, stored[row["id"]][0]) for row in rows]
    shown += [_Shown(_played_row(each), each.episode) for each in again]
    shown = _once(shown)
    sides = [
        (title, [each for each in shown if each.reads == which])
        for title, which in (("with lessons in the prompt", True), ("without", False))
    ]
    return {
        "sides": [(title, side, _share(side)) for title, side in sides if side],
        "task": shown[0].row,
        "panel": rows[0]["panel"] if rows else TRAINING,
        "read": shown[0].reads,
    }


class _Shown:
    """An episode beside others of its task.

    Attributes:
        row: its row; ``panel`` says where it was played.
        turns: its turns as rows.
        reads: True if a prompt held a lesson.
        as_played: whether it trained, replica and all that stood in its prompts and answers.
    """

    def __init__(self, row: IndexRow, episode: "Episode") -> None:
        self.row, self.turns = row, turn_rows(episode)
        self.reads = any(turn["lessons"] for turn in self.turns)
        texts = [(turn.prompt_ids, turn.completion.text, turn.action, turn.feedback) for turn in episode.turns]
        self.as_played = (row["panel"] == TRAINING, row["replica"], row["success"], str(texts))


def _once(shown: Sequence[_Shown]) -> list[_Shown]:
    """Each play once: the same draws with the same prompts end equally, however many evaluations repeat them.

    The first one stays, which the revision keeps if it does, and names the others.
    """
    found = dict[tuple[Any, ...], _Shown]()
    for each in shown:
        first = found.setdefault(each.as_played, each)
        if first is not each:
            first.row = first.row | {"again": [*first.row["again"], each.row["panel"]]}
    return list(found.values())


def _played_row(played: Played) -> IndexRow:
    """Row of an episode that an evaluation played."""
    episode = played.episode
    task = episode.task
    return {
        "panel": played.side, "address": (played.kind, played.position), "replica": episode.replica, "id": episode.id,
        "success": episode.success, "reward": episode.reward, "reason": played.reason, "task": task.id,
        "instruction": task.instruction, "kind": task.kind, "scope": task.scope, "again": [],
    }  # fmt: skip


def _share(side: Sequence[_Shown]) -> str:
    return f"{sum(each.row['success'] for each in side)} of {len(side)} solved"


def episode(run: WatchedRun, reader: IndexReader, query: PageQuery, kind: str, position: int) -> PageValues:
    """One episode, turn by turn, with its prompts."""
    if kind.startswith(PLAYED):
        return _played_episode(run, reader, kind, position)
    training = kind == TRAINING
    row = reader.episodes.at(training, position) if kind in (TRAINING, HELD_OUT) and position < 1 << 31 else None
    if row is None:
        raise CoevoError(f"{run.name}@{reader.revision} keeps no {kind} episode {position}")
    found = run.episodes(reader.manifest(), training, [row["id"]])
    played, panel, reason, use = found[row["id"]]
    turns, texts = _turns(run, reader, played, training)
    figures = read_turn_figures(run.paths, row["revision"], row["id"])
    spent = [each.seconds for each in figures if each.seconds is not None]
    if len(figures) == len(turns):
        turns = [turn | _figures(turn, known) for turn, known in zip(turns, figures, strict=True)]
    return {
        "row": row, "episode": played, "panel": panel, "reason": reason, "use": use, "turns": turns, "texts": texts,
        "kind": kind, "seconds": sum(spent) if len(spent) == len(turns) else None, "meanings": MEANINGS,
        "unmeasured": "" if len(figures) == len(turns) else "elsewhere", "most_measured": MAX_FILES,
    }  # fmt: skip


def _played_episode(run: WatchedRun, reader: IndexReader, kind: str, position: int) -> PageValues:
    """An episode that an evaluation played, of which no seconds are kept."""
    found = played_at(run.paths, reader.revision, kind, position)
    if found is None:
        raise CoevoError(f"{run.name}@{reader.revision}: the evaluation {kind!r} keeps no episode {position} any more")
    turns, texts = _turns(run, reader, found.episode, training=False)
    return {
        "row": _played_row(found), "episode": found.episode, "panel": found.side, "reason": found.reason, "use": "",
        "turns": turns, "texts": texts, "kind": kind, "seconds": None, "meanings": MEANINGS,
        "unmeasured": "evaluation", "most_measured": MAX_FILES,
    }  # fmt: skip


def _turns(
    run: WatchedRun, reader: IndexReader, played: "Episode", training: bool
) -> tuple[list[PageValues], dict[str, IndexRow]]:
    """Turns of an episode with their prompts, and the entries that they read."""
    decode = run.decoder()
    texts = reader.entries.texts(sorted({entry for turn in played.turns for entry in turn.retrieved}), training)
    return [
        told | {"prompt": decode(turn.prompt_ids), "finished": turn.completion.finished} | UNMEASURED
        for told, turn in zip(turn_rows(played), played.turns, strict=True)
    ], texts


def _figures(turn: PageValues, known: TurnFigures) -> PageValues:
    """Seconds of a turn, and the score of each lesson in its prompt."""
    matched = len(known.scores) == len(turn["lessons"])
    return {"seconds": known.seconds, "lesson_scores": known.scores if matched else ()}
