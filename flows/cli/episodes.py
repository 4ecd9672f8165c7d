"""``coevo episodes``: the episodes of a revision, and one of them turn by turn."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, with_option_groups, workspace_at
from coevo.flows.history.revision_reference import Reading, reading
from coevo.flows.history.stored_episodes import (
    EpisodeFilter,
    episode_rows,
    export_episodes,
    kinds_of,
    reasons_of,
    stored_episodes,
    turn_rows,
)
from coevo.utilities.errors import CoevoError, unknown

if TYPE_CHECKING:
    from coevo.records.episode import Episode

SHOWN = ("id", "kind", "instruction", "success", "reason", "lessons", "turns")
PARTS = ("prompt", "observation", "answer", "action", "fault", "feedback")


@dataclass(frozen=True)
class FilterOptions:
    """Episodes to show, as options."""

    failed: Annotated[bool, typer.Option("--failed", help="Only episodes that did not solve their task.")] = False
    training: Annotated[bool, typer.Option("--training", help="Training episodes instead of held-out ones.")] = False
    panel: Annotated[str | None, typer.Option(help="Only episodes of this held-out panel.")] = None
    kind: Annotated[str | None, typer.Option(help="Only tasks of this kind.")] = None
    reason: Annotated[str | None, typer.Option(help="Only episodes that failed for this reason.")] = None
    lesson: Annotated[str | None, typer.Option(metavar="ID", help="Only episodes that read this lesson.")] = None


@dataclass(frozen=True)
class OutputOptions:
    """Form in which the episodes are shown, as options."""

    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the episodes there, every turn.")] = None
    prompts: Annotated[bool, typer.Option("--prompts", help="Show the prompts of an episode, too.")] = False


@with_option_groups
def episodes(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, or one of its revisions.")],
    chosen: FilterOptions,
    shown: OutputOptions,
    episode: Annotated[str | None, typer.Argument(metavar="[ID]", help="Episode to show turn by turn.")] = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the held-out episodes of a revision, with the reason why each failed.

    `reason`: no usable action, invalid action, out of turns, out of tokens, environment error, or wrong end (the
    environment ended the episode). `lessons`: no bank was searched, it had no fitting lesson, a fitting one was not
    retrieved, it was left out of the prompts, or it was read and not followed; unknown where the environment does not
    say what its tasks need. The last tables count both, and failures by kind of task. With an id, shows that episode.

    Example: coevo episodes homerules-coevo-rl-1 --failed
    """
    wanted = EpisodeFilter(**asdict(chosen))
    with reading(run, workspace_at(workspace)) as opened:
        if episode is not None:
            found = _found(opened, episode, chosen.training)
            if shown.parquet is not None:
                export_episodes(opened, chosen.training, {found[0].id}, shown.parquet)
            _one(opened, found, shown.prompts, as_json)
            return
        if shown.prompts:
            raise CoevoError(f"--prompts needs an episode: `coevo episodes {opened.name}` lists their ids")
        rows = episode_rows(opened, wanted)
        if shown.parquet is not None:
            export_episodes(opened, chosen.training, {row["id"] for row in rows}, shown.parquet)
    if as_json:
        output.document(rows)
        return
    output.table(rows, SHOWN)
    if not rows:
        output.line(f"No episode of {opened.name} fits.")
    output.table(reasons_of(rows), ("episodes", "reason", "lessons"))
    output.table(kinds_of(rows), ("panel", "kind", "episodes", "failed"))


def _found(opened: Reading, wanted: str, training: bool) -> tuple["Episode", str, str]:
    """An episode by its id, why it failed, and the part of its lessons in that."""
    found = {each.id: (each, reason, use) for each, _, reason, use in stored_episodes(opened, training)}
    if wanted not in found:
        raise CoevoError(unknown("episode", wanted, found, f"`coevo episodes {opened.name}` lists the ids"))
    return found[wanted]


def _one(opened: Reading, found: tuple["Episode", str, str], prompts: bool, as_json: bool) -> None:
    """Print an episode turn by turn."""
    from coevo.models.policy.decoder import Decoder

    episode, reason, use = found
    turns, lessons = turn_rows(episode), _lessons(opened)
    if prompts or as_json:
        decode = Decoder(opened.paths.lineage / "policy")
        turns = [row | {"prompt": decode(turn.prompt_ids)} for row, turn in zip(turns, episode.turns, strict=True)]
    if as_json:
        output.document({"id": episode.id, "reason": reason, "lessons": use, "turns": turns})
        return
    output.line(episode.task.instruction)
    for turn in turns:
        output.line(f"turn {turn['turn']}: reward {turn['reward']:g}")
        for entry in turn["lessons"]:
            output.line(f"  lesson {entry[:8]}: {lessons.get(entry, 'of another bank')}")
        if prompts and turn["prompt"] is None:
            output.line("  prompt: not kept, since the run has no tokenizer here")
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
