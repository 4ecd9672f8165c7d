"""``coevo bank why``: origin and usage of an entry."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at
from coevo.flows.history.revision_reference import Reading, find_entry, lessons_of, reading
from coevo.flows.history.verdicts import (
    CREDIT_COLUMNS,
    RULING_COLUMNS,
    credit_row,
    ruling_cells,
    ruling_row,
    verdict_columns,
    verdict_row,
    writer_of,
)
from coevo.lineage.revision.retention import ranges
from coevo.records.entry import Entry

if TYPE_CHECKING:
    from coevo.memory.bank.bank import Provenance

WhyRow = Mapping[str, Any]
VERDICT_COLUMNS = ("revision", "candidates", "admitted", "difference", "low", "high", "significant")


def why(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, or one of its revisions.")],
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="Id of an entry, its beginning, or its lesson.")],
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the origin and the usage of an entry.

    Lists its writer, the episodes that taught it, the replay verdict on its batch, its credit (replays with it, minus
    those without it), its edit operations, its earlier wordings, and the outcomes of the episodes whose prompts held
    it.

    Example: coevo bank why homerules-coevo-rl-1 3f2a9c01b7de
    """
    from coevo.memory.bank.bank import why as trace

    with reading(run, workspace_at(workspace)) as opened:
        entry = find_entry(entry, lessons_of(opened.bank()))
        rows = list(opened.episodes())
        found = trace(opened.bank(), entry, rows)
        story = _story(found, rows, opened) | {"episodes_gone": opened.episodes_gone()}
    if as_json:
        output.document(story)
    else:
        _print(found, story)


def _story(found: "Provenance", rows: Iterable[WhyRow], opened: Reading) -> dict[str, Any]:
    sources = {row["id"]: row for row in rows if row["id"] in found.entry.sources}
    return {
        "entry": asdict(found.entry),
        "admitted": found.admitted,
        "writer": writer_of(opened.history[min(found.entry.created, opened.manifest.revision)]),
        "taught_by": [_taught(name, sources.get(name)) for name in found.entry.sources],
        "verdicts": [verdict_row(judged, opened.history) for judged in found.judged],
        "credits": [credit_row(each) for each in found.left_out],
        "operations": [ruling_row(ruling) for ruling in found.operations],
        "edits": _edits(opened, found),
        "retrievals": [asdict(retrieval) for retrieval in found.retrievals],
    }


def _taught(name: str, row: WhyRow | None) -> dict[str, Any]:
    """Source episode; only its name if the run did not play it, as after an import."""
    if row is None:
        return {"episode": name, "success": None, "instruction": None, "actions": None}
    actions = [turn["action"] for turn in row["turns"]]
    return {"episode": name, "success": row["success"], "instruction": row["instruction"], "actions": actions}


def _edits(opened: Reading, found: "Provenance") -> list[dict[str, Any]]:
    """Earlier wordings of the entry, newest first, one per revision that changed it.

    The list ends at a dropped revision, with ``before`` None.
    """
    wordings: list[dict[str, Any]] = []
    kept = set(opened.lineage.history.retained())
    now: Entry | None = found.entry
    while now is not None and found.admitted and now.edited > now.created:
        revision = now.edited
        if revision - 1 not in kept:
            return [*wordings, {"revision": revision, "before": None}]
        now = next((held for held in opened.bank(revision - 1).entries() if held.id == now.id), None)
        wordings += [{"revision": revision, "before": now.strategy}] if now is not None else []
    return wordings


def _print(found: "Provenance", story: dict[str, Any]) -> None:
    entry = found.entry
    output.line(f"{entry.id}  {entry.strategy}")
    parts = {"when": entry.condition, "for example": entry.example, "scope": entry.scope, "keywords": entry.keywords}
    output.line("; ".join(f"{name} {text}" for name, text in parts.items() if text))
    output.line(f"entered in revision {entry.created}" if found.admitted else "never entered the bank")
    output.line(f"written by {story['writer']}" if story["writer"] else "imported with `coevo bank import`")
    if not entry.active:
        output.line(f"retired in revision {entry.retired}")
    for edit in story["edits"]:
        before = f"before: {edit['before']}" if edit["before"] else "the earlier text was dropped by gc"
        output.line(f"edited in revision {edit['revision']}; {before}")
    output.line()
    output.line("Taught by")
    output.table([_joined(source) for source in story["taught_by"]], ("episode", "success", "instruction", "actions"))
    output.line()
    if story["verdicts"] or not story["operations"]:
        output.line("Replay")
        output.table(story["verdicts"], verdict_columns(VERDICT_COLUMNS, story["verdicts"]))
    if story["credits"]:
        output.line("Left out")
        output.table(story["credits"], ("revision", *CREDIT_COLUMNS, "stays"))
    if story["operations"]:
        output.line("Operations")
        output.table([ruling_cells(row) for row in story["operations"]], RULING_COLUMNS)
    output.line()
    gone = f"; gc dropped episodes of revisions {ranges(story['episodes_gone'])}" if story["episodes_gone"] else ""
    output.line(f"Retrieved in {len(found.retrievals)} episodes{gone}")
    output.table(list(_by_revision(found)), ("revision", "episodes", "successes"))


def _joined(source: dict[str, Any]) -> dict[str, Any]:
    return source | {"actions": source["actions"] and ", ".join(source["actions"])}


def _by_revision(found: "Provenance") -> Iterable[dict[str, Any]]:
    for revision, group in groupby(found.retrievals, key=lambda retrieval: retrieval.revision):
        ended = [retrieval.success for retrieval in group]
        yield {"revision": revision, "episodes": len(ended), "successes": sum(ended)}
