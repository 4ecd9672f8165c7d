"""``coevo episodes``: the episodes of a revision, and one of them turn by turn."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, with_option_groups, workspace_at
from coevo.flows.history.revision_reference import Reading, reading
from coevo.flows.history.stored_episodes import (
    EpisodeFilter,
    episode_rows,
    export_episodes,
    reasons_of,
    stored_episodes,
    turn_rows,
)
from coevo.utilities.errors import CoevoError, unknown

SHOWN = ("id", "kind", "instruction", "success", "reason", "lessons", "turns")
PARTS = ("observation", "answer", "action", "fault", "feedback")


@dataclass(frozen=True)
class FilterOptions:
    """Episodes to show, as options."""

    failed: Annotated[bool, typer.Option("--failed", help="Only episodes that did not solve their task.")] = False
    training: Annotated[bool, typer.Option("--training", help="Training episodes instead of held-out ones.")] = False
    panel: Annotated[str | None, typer.Option(help="Only episodes of this held-out panel.")] = None
    kind: Annotated[str | None, typer.Option(help="Only tasks of this kind.")] = None
    reason: Annotated[str | None, typer.Option(help="Only episodes that failed for this reason.")] = None
    lesson: Annotated[str | None, typer.Option(metavar="ID", help="Only episodes that read this lesson.")] = None


@with_option_groups
def episodes(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, or one of its revisions.")],
    chosen: FilterOptions,
    episode: Annotated[str | None, typer.Argument(metavar="[ID]", help="Episode to show turn by turn.")] = None,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the episodes there, every turn.")] = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the held-out episodes of a revision, with the reason why each failed.

    `reason`: no usable action, invalid action, out of turns, out of tokens, environment error, or wrong end (the
    environment ended the episode). `lessons`: the bank had no fitting lesson, a fitting one was not retrieved, it was
    left out of the prompts, or it was read and not followed; unknown where the environment does not say what its tasks
    need. The last table counts both.

    Example: coevo episodes homerules-coevo-rl-1 --failed
    """
    wanted = EpisodeFilter(**asdict(chosen))
    with reading(run, workspace_at(workspace)) as opened:
        if episode is not None:
            _one(opened, episode, chosen.training, as_json)
            return
        rows = episode_rows(opened, wanted)
        if parquet is not None:
            export_episodes(opened, chosen.training, {row["id"] for row in rows}, parquet)
    if as_json:
        output.document(rows)
        return
    output.table(rows, SHOWN)
    if not rows:
        output.line(f"No episode of {opened.name} fits.")
    output.table(reasons_of(rows), ("episodes", "reason", "lessons"))


def _one(opened: Reading, wanted: str, training: bool, as_json: bool) -> None:
    """Print an episode turn by turn."""
    found = {each.id: (each, reason, use) for each, _, reason, use in stored_episodes(opened, training)}
    if wanted not in found:
        raise CoevoError(unknown("episode", wanted, found, f"`coevo episodes {opened.name}` lists the ids"))
    episode, reason, use = found[wanted]
    turns, lessons = turn_rows(episode), _lessons(opened)
    if as_json:
        output.document({"id": wanted, "reason": reason, "lessons": use, "turns": turns})
        return
    output.line(episode.task.instruction)
    for turn in turns:
        output.line(f"turn {turn['turn']}: reward {turn['reward']:g}")
        for entry in turn["lessons"]:
            output.line(f"  lesson {entry[:8]}: {lessons.get(entry, 'of another bank')}")
        for part in filter(turn.get, PARTS):
            output.line(f"  {part}: {turn[part]}")
    ending = ", ".join(filter(None, (reason, use)))
    output.line("solved" if episode.success else f"not solved: {ending}")


def _lessons(opened: Reading) -> dict[str, Any]:
    """Text of each lesson by id; empty for a run without a bank."""
    if opened.config.bank is None:
        return {}
    return {entry.id: entry.strategy for entry in opened.bank().entries()}


COMMANDS = (episodes,)
