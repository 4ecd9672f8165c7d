"""``coevo episodes``: the episodes of a revision, and one of them turn by turn."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, with_option_groups, workspace_at
from coevo.flows.history.revision_reference import Reading, reading
from coevo.flows.history.stored_episodes import (
    EpisodeFilter,
    FoundEpisodes,
    export_episodes,
    find_episodes,
    groups_of,
    is_training,
    kinds_of,
    reasons_of,
    stored_episodes,
    turn_rows,
)
from coevo.records.failure_reasons import MEANINGS
from coevo.utilities.errors import CoevoError, counted, unknown

if TYPE_CHECKING:
    from coevo.records.episode import Episode

SHOWN = ("id", "kind", "instruction", "success", "reason", "lessons", "turns")
IN_GROUP = ("id", "success", "reason", "lessons", "actions")
PARTS = ("prompt", "observation", "answer", "action", "fault", "feedback")


@dataclass(frozen=True)
class FilterOptions:
    """Episodes to show, as options."""

    failed: Annotated[bool, typer.Option("--failed", help="Only episodes that did not solve their task.")] = False
    training: Annotated[bool, typer.Option("--training", help="Training episodes instead of held-out ones.")] = False
    panel: Annotated[str | None, typer.Option(help="Only episodes of this held-out panel.")] = None
    kind: Annotated[str | None, typer.Option(help="Only tasks of this kind.")] = None
    reason: Annotated[str | None, typer.Option(help="Only episodes that failed for this reason.")] = None
    lesson: Annotated[str | None, typer.Option(metavar="ENTRY", help="Only episodes that read this lesson.")] = None


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
    episode: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Episode, shown turn by turn, or group.")
    ] = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the held-out episodes of a revision, with the reason why each failed.

    `reason`: no usable action, invalid action, out of turns, out of tokens, environment error, or wrong end (the
    environment ended the episode). `lessons`: the part of the lessons in a failure; its words are explained below the
    table. The last tables count both, and failures by group (attempts at one task) and kind of task.

    With the id of an episode, shows its turns; with that of a group, what each attempt did. `--lesson` takes an id or a
    text, and leaves out panels that are played with a bank of their own, unless --panel names one.

    Example: coevo episodes homerules-coevo-rl-1 --failed
    """
    wanted = EpisodeFilter(**asdict(chosen))
    with reading(run, workspace_at(workspace)) as opened:
        if episode is not None:
            wanted = EpisodeFilter(is_training(episode) or (chosen.training and "/" not in episode))
            _named(opened, episode, wanted, shown, as_json)
            return
        if shown.prompts:
            raise CoevoError(f"--prompts needs an episode: `coevo episodes {opened.name}` lists their ids")
        found = find_episodes(opened, wanted)
        if shown.parquet is not None:
            export_episodes(opened, chosen.training, {row["id"] for row in found.rows}, shown.parquet)
    if as_json:
        output.document(found.rows)
        return
    output.table(found.rows, SHOWN)
    _counts(found.rows)
    output.table(groups_of(found.rows), ("group", "kind", "instruction", "episodes", "failed"))
    if found.rows:
        output.table(kinds_of(found.among, found.rows), ("panel", "kind", "episodes", "failed"))
    for text in _totals(found, wanted, opened.name):
        output.line(text)


def _counts(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print failures by reason and part of the lessons, and what the words for that part mean."""
    reasons = reasons_of(rows)
    output.table(reasons, ("episodes", "reason", "lessons"))
    for use in dict.fromkeys(row["lessons"] for row in reasons):
        _meaning(use)


def _meaning(use: str) -> None:
    if use in MEANINGS:
        output.line(f"{use}: {MEANINGS[use]}")


def _totals(found: FoundEpisodes, wanted: EpisodeFilter, name: str) -> Iterator[str]:
    """Lines about all episodes that were chosen, and about those left out."""
    where = f" on {wanted.panel}" if wanted.panel else ""
    what = f"{'training ' if wanted.training else ''}{f'{wanted.kind} ' if wanted.kind else ''}episode"
    if not found.rows:
        yield f"No {what} of {name}{where} fits."
    read = ""
    if found.lesson is not None:
        entry, text = found.lesson
        read = f" that read {entry} ({text})" if text else f" that read {entry}"
        if not found.among:
            yield f"None read {entry} ({text}): `coevo bank why {name} {entry}` shows the revisions in which one did."
    if found.among:
        failed = sum(bool(row["reason"]) for row in found.among)
        yield f"{counted(len(found.among), what)} of {name}{where}{read}, {failed} failed; {len(found.rows)} shown"
    for panel, count in sorted(found.own_banks.items()):
        yield (
            f"left out: {count} of {panel}, which is played with a bank of its own that has an entry of this text: "
            f"--panel {panel}"
        )


def _named(opened: Reading, name: str, wanted: EpisodeFilter, shown: OutputOptions, as_json: bool) -> None:
    """Show one episode, or the attempts of one group."""
    found = {each.id: (each, reason, use) for each, _, reason, use in stored_episodes(opened, wanted.training)}
    ids = {name} if name in found else {each for each in found if each.rpartition("/")[0] == name}
    if not ids:
        raise CoevoError(unknown("episode", name, found, _remedy(opened, name, wanted.training)))
    if name not in found and shown.prompts:
        raise CoevoError(f"--prompts needs an episode, and {name} is a group: choose of {', '.join(sorted(ids))}")
    if shown.parquet is not None:
        export_episodes(opened, wanted.training, ids, shown.parquet)
    if name in found:
        _one(opened, found[name], shown.prompts, as_json)
        return
    rows = [row for row in find_episodes(opened, wanted).rows if row["id"] in ids]
    if as_json:
        output.document(rows)
        return
    output.line(rows[0]["instruction"])
    output.table([row | {"actions": ", ".join(action or "-" for action in row["actions"])} for row in rows], IN_GROUP)
    _counts(rows)
    output.line(f"{counted(len(rows), 'episode')}, {rows[0]['group_failed']} failed")


def _remedy(opened: Reading, name: str, training: bool) -> str:
    """Command that shows an episode of another revision, or that lists those of this one."""
    revision = name.partition("/")[0]
    if "/" in name and revision.isdecimal() and int(revision) != opened.manifest.revision:
        return f"It is of revision {revision}: `coevo episodes {opened.paths.name}@{revision} {name}`"
    return f"`coevo episodes {opened.name}{' --training' if training else ''}` lists the ids"


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
    _meaning(use)


def _lessons(opened: Reading) -> dict[str, Any]:
    """Text of each lesson by id; empty for a run without a bank."""
    if opened.config.bank is None:
        return {}
    return {entry.id: entry.strategy for entry in opened.bank().entries()}


COMMANDS = (episodes,)
