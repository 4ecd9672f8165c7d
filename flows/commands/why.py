"""``coevo bank why``: where an entry comes from, and how it has served."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows import output
from flows.reference import Reading, reading
from flows.settings import JsonOption, WorkspaceOption, workspace_at
from flows.verdicts import RULING_COLUMNS, ruling_cells, ruling_row, verdict_row, with_bound
from lineage.retention import ranges
from records.entry import Entry

if TYPE_CHECKING:
    from memory.provenance import Provenance

Row = Mapping[str, Any]
VERDICT_COLUMNS = ("revision", "candidates", "admitted", "difference", "low", "high", "inside_noise")


def why(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="A run, or one of its revisions.")],
    entry: Annotated[str, typer.Argument(help="Id of the entry, see `coevo bank show` and `coevo bank log --json`.")],
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show where an entry comes from and how it served.

    Names the episodes that taught it, what replay said of its batch, the operations that changed it, earlier wordings,
    and how the episodes ended that were shown it.

    Example: coevo bank why homerules-coevo-rl-1 3f2a9c01b7de
    """
    from memory.provenance import why as trace

    with reading(run, workspace_at(workspace)) as opened:
        trace(opened.bank(), entry)
        rows = list(opened.episodes())
        found = trace(opened.bank(), entry, rows)
        story = _story(found, rows, opened) | {"episodes_gone": opened.episodes_gone()}
    if as_json:
        output.document(story)
    else:
        _tell(found, story)


def _story(found: "Provenance", rows: Iterable[Row], opened: Reading) -> dict[str, Any]:
    sources = {row["id"]: row for row in rows if row["id"] in found.entry.sources}
    return {
        "entry": asdict(found.entry),
        "admitted": found.admitted,
        "taught_by": [_taught(name, sources.get(name)) for name in found.entry.sources],
        "verdicts": [verdict_row(judged, opened.history) for judged in found.judged],
        "operations": [ruling_row(ruling) for ruling in found.operations],
        "edits": _edits(opened, found),
        "retrievals": [asdict(retrieval) for retrieval in found.retrievals],
    }


def _taught(name: str, row: Row | None) -> dict[str, Any]:
    """A source episode; only its name where it is not among the run's own, as after an import."""
    if row is None:
        return {"episode": name, "success": None, "instruction": None, "actions": None}
    actions = [turn["action"] for turn in row["turns"]]
    return {"episode": name, "success": row["success"], "instruction": row["instruction"], "actions": actions}


def _edits(opened: Reading, found: "Provenance") -> list[dict[str, Any]]:
    """Earlier wordings, newest first: what the entry said before each revision that changed it.

    They end where a revision was dropped, with ``before`` None.
    """
    wordings: list[dict[str, Any]] = []
    kept = set(opened.lineage.retained())
    now: Entry | None = found.entry
    while now is not None and found.admitted and now.edited > now.created:
        revision = now.edited
        if revision - 1 not in kept:
            return [*wordings, {"revision": revision, "before": None}]
        now = next((held for held in opened.bank(revision - 1).entries() if held.id == now.id), None)
        wordings += [{"revision": revision, "before": now.strategy}] if now is not None else []
    return wordings


def _tell(found: "Provenance", story: dict[str, Any]) -> None:
    entry = found.entry
    output.line(f"{entry.id}  {entry.strategy}")
    parts = {"when": entry.condition, "for example": entry.example, "scope": entry.scope, "keywords": entry.keywords}
    output.line("; ".join(f"{name} {text}" for name, text in parts.items() if text))
    output.line(f"entered in revision {entry.created}" if found.admitted else "never entered the bank")
    if not entry.active:
        output.line(f"retired in revision {entry.retired}")
    for edit in story["edits"]:
        before = f"before: {edit['before']}" if edit["before"] else "what it said before was dropped by gc"
        output.line(f"edited in revision {edit['revision']}; {before}")
    output.line()
    output.line("Taught by")
    output.table([_joined(source) for source in story["taught_by"]], ("episode", "success", "instruction", "actions"))
    output.line()
    if story["verdicts"] or not story["operations"]:
        output.line("Replay")
        output.table(story["verdicts"], with_bound(VERDICT_COLUMNS, story["verdicts"]))
    if story["operations"]:
        output.line("Operations")
        output.table([ruling_cells(row) for row in story["operations"]], RULING_COLUMNS)
    output.line()
    gone = f"; those of revisions {ranges(story['episodes_gone'])} were dropped by gc" if story["episodes_gone"] else ""
    output.line(f"Retrieved in {len(found.retrievals)} episodes{gone}")
    output.table(list(_by_revision(found)), ("revision", "episodes", "successes"))


def _joined(source: dict[str, Any]) -> dict[str, Any]:
    return source | {"actions": source["actions"] and ", ".join(source["actions"])}


def _by_revision(found: "Provenance") -> Iterable[dict[str, Any]]:
    for revision, group in groupby(found.retrievals, key=lambda retrieval: retrieval.revision):
        ended = [retrieval.success for retrieval in group]
        yield {"revision": revision, "episodes": len(ended), "successes": sum(ended)}
