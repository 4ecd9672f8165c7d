"""What a finished run says: the success it reached and what to compare it with, three entries, where to look next."""

import shlex
from collections.abc import Mapping, Sequence

from envs.registry import find
from flows.history import headline_panel
from flows.output import line, table
from flows.settings import workspace_at
from lineage.lineage import Lineage
from lineage.manifest import Manifest
from lineage.workspace import RunPaths, Workspace
from memory.stats import Stats
from memory.store import Bank
from records.entry import Entry
from tasks.waiting import waits

COLUMNS = ("held-out success", "start", "end", "what it is")


def summarise(place: Workspace, paths: RunPaths) -> None:
    """Print the end of a run."""
    with Lineage.open(paths.lineage, place.cache) as lineage:
        history, kept = lineage.log(), lineage.retained()
    bank = Bank(paths.bank)
    line()
    table(outcome(history, find(history[-1].state["config"]["env"]["type"]).panels), COLUMNS)
    line()
    for entry, stats in most_used(bank.active(), bank.stats(), 3):
        uses = f"({stats.successes} of {stats.retrievals} uses succeeded)"
        line(f"  {entry.id}  {in_plain_words(entry)} {uses}")
    line()
    line("Look further:")
    for command in look_further(paths.name, history[-1], kept):
        line(f"  coevo {command}{workspace_option(place)}")


def outcome(history: list[Manifest], panels: Mapping[str, str]) -> list[dict[str, object]]:
    """Success of first and last revision on the held-out panels, and what to compare it with."""
    first, last = history[0].state["metrics"], history[-1].state["metrics"]
    played = [name for name in panels if f"success/{name}" in last]
    rows = [_row(name, first.get(f"success/{name}"), last[f"success/{name}"], panels[name]) for name in played]
    if f"expert/{headline_panel(history[0])}" in first:
        blind = first[f"expert/{headline_panel(history[0])}"]
        rows.append(_row("blind expert", None, blind, "an expert that is told nothing"))
    return rows


def _row(name: str, start: float | None, end: float, about: str) -> dict[str, object]:
    return {"held-out success": name, "start": start, "end": end, "what it is": about}


def workspace_option(place: Workspace) -> str:
    """The option that a command needs to work in a workspace."""
    return "" if place.root == workspace_at(None).root else f" --workspace {shlex.quote(str(place.root))}"


def most_used(entries: Sequence[Entry], stats: Mapping[str, Stats], count: int) -> list[tuple[Entry, Stats]]:
    """The entries that most successful episodes had in their prompts."""
    ranked = sorted(entries, key=lambda entry: -stats.get(entry.id, Stats(entry.id)).successes)
    return [(entry, stats.get(entry.id, Stats(entry.id))) for entry in ranked[:count]]


def in_plain_words(entry: Entry) -> str:
    """An entry as a sentence."""
    where = f" in {entry.scope}" if entry.scope else ""
    return f"when {entry.condition}{where}: {entry.strategy}; for example {entry.example}"


def look_further(run: str, head: Manifest, kept: Sequence[int]) -> tuple[str, ...]:
    """Commands for a next step that this run can take; ``kept`` are the revisions that it can go back to."""
    last, config = head.revision, head.state["config"]
    middle = min(kept, key=lambda revision: abs(revision - last // 2))
    banked = config["bank"] is not None
    of_bank = (f"bank log {run}",) if banked else ()
    further = f"resume {run} --iterations {2 * max(1, head.iteration)}"
    onwards = (further,) if not waits(head) and (banked or config["update"] is not None) else ()
    return (f"log {run}", *of_bank, f"rollback {run} --to {middle}", *onwards, "ui")
