"""Summary of a finished run: success with its baselines, three entries, and commands for a next step."""

from collections.abc import Mapping, Sequence
from typing import Any

from coevo.envs.registry import find
from coevo.flows.console.options import workspace_option
from coevo.flows.console.output import line, table
from coevo.flows.history.history import headline_panel
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import waits
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.stats import Stats
from coevo.records.entry import Entry

COLUMNS = ("held-out success", "start", "end", "description")


def summarise(workspace: Workspace, paths: RunPaths) -> None:
    """Print the summary of a finished run."""
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        history, kept = lineage.history.log(), lineage.history.retained()
    bank = Bank(paths.bank)
    line()
    table(outcome(history, described(history[-1].state["config"])), COLUMNS)
    line()
    for entry, stats in most_used(bank.active(), bank.stats(), 3):
        uses = f"({stats.successes} of {stats.retrievals} uses succeeded)"
        line(f"  {entry.id}  {in_plain_words(entry)} {uses}")
    line()
    line("Next steps:")
    for command in look_further(paths.name, history[-1], kept):
        line(f"  coevo {command}{workspace_option(workspace)}")


def described(config: Mapping[str, Any]) -> dict[str, str]:
    """Panels of a run with their descriptions; those of a table, which its file names, have none."""
    known = find(config["env"]["type"]).panels
    evaluated = (*config["evaluation"]["panels"], *config["evaluation"]["final_panels"])
    return {name: known.get(name, "") for name in dict.fromkeys((*known, *evaluated))}


def outcome(history: list[Manifest], panels: Mapping[str, str]) -> list[dict[str, object]]:
    """Rows with the success of the first and the last revision per held-out panel, and that of the baseline."""
    first, last = history[0].metrics, history[-1].metrics
    named = {name: f"agent/success/{name}" for name in panels}
    rows = [_row(name, first.get(key), last[key], panels[name]) for name, key in named.items() if key in last]
    blind = first.get(f"agent/expert/{headline_panel(history[0])}")
    if blind is not None:
        rows.append(_row("blind expert", None, blind, "scripted expert without notes"))
    return rows


def _row(name: str, start: float | None, end: float, about: str) -> dict[str, object]:
    return {"held-out success": name, "start": start, "end": end, "description": about}


def most_used(entries: Sequence[Entry], stats: Mapping[str, Stats], count: int) -> list[tuple[Entry, Stats]]:
    """Entries that were in the prompts of most successful episodes, then of most episodes, at most ``count``."""
    used = [(entry, stats[entry.id]) for entry in entries if entry.id in stats and stats[entry.id].retrievals]
    return sorted(used, key=lambda each: (-each[1].successes, -each[1].retrievals))[:count]


def in_plain_words(entry: Entry) -> str:
    """Format an entry as a sentence."""
    where = f" in {entry.scope}" if entry.scope else ""
    return f"when {entry.condition}{where}: {entry.strategy}; for example {entry.example}"


def look_further(run: str, head: Manifest, kept: Sequence[int]) -> tuple[str, ...]:
    """Commands for the next steps of a run; ``kept``: revisions that it can be rolled back to."""
    last, config = head.revision, head.state["config"]
    if waits(head):
        return (f"approve --list {run}", f"approve {run}@{last}", f"approve {run}@{last} --reject", f"log {run}")
    middle = min(kept, key=lambda revision: abs(revision - last // 2))
    banked = config["bank"] is not None
    of_bank = (f"bank log {run}",) if banked else ()
    further = f"resume {run} --iterations {2 * max(1, head.iteration)}"
    onwards = (further,) if banked or config["update"] is not None else ()
    return (f"log {run}", *of_bank, f"rollback {run} --to {middle}", *onwards, "ui")
