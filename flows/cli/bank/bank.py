"""``coevo bank``: entries of a run's bank, and their history."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.flows.cli.bank.bank_serve import serve, token
from coevo.flows.cli.bank.effect import test
from coevo.flows.cli.bank.exchange import export, import_
from coevo.flows.cli.bank.rejects import rejects
from coevo.flows.cli.bank.retire import retire
from coevo.flows.cli.bank.retrieval import retrieval
from coevo.flows.cli.bank.train_writer import train_writer
from coevo.flows.cli.bank.why import why
from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, TrustOption, WorkspaceOption, workspace_at
from coevo.flows.history.history import bank_sizes
from coevo.flows.history.revision_reference import Reading, find_entry, reading
from coevo.flows.history.verdicts import (
    CREDIT_COLUMNS,
    RULING_COLUMNS,
    latest_credits,
    ruling_cells,
    ruling_row,
    verdict_columns,
    verdict_row,
    with_credit,
)
from coevo.records.entry import Entry

if TYPE_CHECKING:
    from coevo.memory.stats import RetrievalCounts

app = typer.Typer(
    help="Show or change the bank of a run, or serve one that stands alone.",
    rich_markup_mode=None,
    add_completion=False,
)
RevisionArgument = Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, or one of its revisions.")]

LOG_COLUMNS = (
    "revision", "candidates", "admitted", "rejected", "bank", "difference", "low", "high", "significant", "pairs",
)  # fmt: skip
REJECTED_COLUMNS = ("revision", "candidates", "difference", "low", "high", "pairs", "reason")
ENTRY_COLUMNS = ("id", "scope", "strategy", "condition", "example", "created", "retrievals", "successes")
HIT_COLUMNS = ("score", "id", "scope", "strategy", "condition", "example")
DIFF_COLUMNS = ("change", "id", "scope", "strategy", "was")
HEALTH_COLUMNS = ("finding", "id", "lesson", "other", "other lesson", "similarity")


@app.command()
def log(
    run: RevisionArgument,
    revision: Annotated[int | None, typer.Option(min=0, help="Only what this revision decided.")] = None,
    rejected: Annotated[bool, typer.Option("--rejected", help="Only candidates that were turned down.")] = False,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the verdicts on candidates and edit operations.

    With admission by replay, one row per batch of candidates. `difference`: mean reward with the batch in the bank,
    minus mean reward without it. `low`, `high`: its 95 % interval. `significant`: the interval does not hold the
    threshold; it decides nothing. `bound`, with bank.admission.confidence: lower bound of the gain by all replays of
    the lesson so far, which had to exceed the threshold; empty if too many pairs were lost. `seen share`, with
    admission within groups: share of the episodes with the candidate in the bank that saw it in a prompt; every group
    counts, whoever saw it. `reason`, with --rejected: what did not suffice.

    With edit operations, one row per operation: applied, or rejected with the reason. `removed`: taken out by score or
    capacity. `retired`: taken out by a person, with the reason; see `coevo bank retire`.

    Example: coevo bank log homerules-coevo-rl-1 --rejected
    """
    with reading(run, workspace_at(workspace)) as opened:
        bank = opened.bank()
        sizes = bank_sizes(opened.history)
        rows = [
            verdict_row(judged, opened.history)
            | {"bank": sizes[judged.verdict.revision], "entries": _texts(judged.candidates)}
            for judged in bank.judged()
        ]
        rulings = [ruling_row(ruling) for ruling in bank.operations()]
    rows, rulings = ([row for row in each if revision in (None, row["revision"])] for each in (rows, rulings))
    if rejected:
        rows = [row for row in rows if row["rejected"]]
        rulings = [row for row in rulings if row["outcome"] == "rejected"]
    if as_json:
        output.document([*rows, *rulings])
        return
    if rows or not rulings:
        named = [row | {"lesson": _named([each["strategy"] for each in row["entries"]])} for row in rows]
        columns = (*(REJECTED_COLUMNS if rejected else verdict_columns(LOG_COLUMNS, rows)), "lesson")
        _print(named, columns, False, f"No candidates of this kind were judged up to {opened.name}.")
    output.table([ruling_cells(row) for row in rulings], RULING_COLUMNS)


@app.command()
def show(
    run: RevisionArgument,
    entries: Annotated[
        list[str] | None, typer.Argument(metavar="[ENTRY ...]", help="Ids, their beginnings, or lessons; default: all.")
    ] = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the entries of the bank and how often each was used.

    `retrievals`: number of training episodes whose prompts held the entry. `successes`: number of these that succeeded.
    A line below the table says how retrievals are distributed over all entries.

    With bank.retirement, also the latest measurement of each entry. `credit`: mean reward of replays with the entry,
    minus mean reward without it. `credit low`, `credit high`: its 95 % interval over so many pairs.

    Example: coevo bank show homerules-coevo-rl-1@5
    """
    with reading(run, workspace_at(workspace)) as opened:
        rows, counts = _entry_rows(opened)
    if entries:
        chosen = {find_entry(entry, {row["id"]: row["strategy"] for row in rows}) for entry in entries}
        rows = [row for row in rows if row["id"] in chosen]
    _print(rows, with_credit(ENTRY_COLUMNS, rows), as_json, f"The bank of {opened.name} is empty.")
    if counts is not None and not as_json:
        output.line(
            f"Retrievals per entry: {counts.least} to {counts.most}, median {counts.median:g}; {counts.never} of "
            f"{counts.entries} entries never."
        )


@app.command()
def health(run: RevisionArgument, as_json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Show entries that no training episode has read, near-duplicates, and pairs that contradict each other.

    `contradict`: two entries of one scope and condition, alike, of which replays measured gains of opposite sign.
    `tested` in the line below the table: share of entries whose gain was measured by replay, one by one.

    Example: coevo bank health homerules-coevo-rl-1
    """
    from coevo.tasks.bank_alone.bank_reader import bank_health, measured_gains

    with reading(run, workspace_at(workspace)) as opened:
        bank = opened.bank()
        entries = {entry.id: entry for entry in bank.active()}
        found = bank_health(entries.values(), bank.stats(), measured_gains(bank))
    if as_json:
        output.document(asdict(found))
        return
    cells = list[tuple[str, str, str, str | None, str | None, float | None]]()
    cells += [("never read", each, entries[each].strategy, None, None, None) for each in found.never_retrieved]
    for finding, pairs in (("near-duplicates", found.near_duplicates), ("contradict", found.contradictions)):
        for one, other, alike in pairs:
            cells.append((finding, one, entries[one].strategy, other, entries[other].strategy, alike))
    output.table([dict(zip(HEALTH_COLUMNS, each, strict=True)) for each in cells], HEALTH_COLUMNS)
    output.line(
        f"{opened.name}: {found.entries} entries, {found.tested:.0%} tested; {len(found.never_retrieved)} never read; "
        f"{len(found.near_duplicates)} pairs of near-duplicates, {len(found.contradictions)} that contradict."
    )


@app.command()
def search(
    run: RevisionArgument,
    query: Annotated[str, typer.Argument(help="Text to search for, such as an instruction.")],
    scope: Annotated[str | None, typer.Option(help="Task key to search in, as in training; by default all.")] = None,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Search the bank with the run's retrieval settings.

    Example: coevo bank search homerules-coevo-rl-1 "heat mug" --scope lotus
    """
    from coevo.configs.load.open_parts import open_parts
    from coevo.flows.console.trust_prompt import trust_run
    from coevo.tasks.play.retrieve import Lacking, index_of
    from coevo.tasks.publish.reporter import in_stage
    from coevo.tasks.run.weight_digests import check_weights

    workspace = workspace_at(directory)
    with reading(run, workspace) as opened:
        trust_run(workspace, opened.paths.name, opened.config, trust, ask=not as_json)
        open_parts(opened.config, "bank.retrieval")
        check_weights(opened.manifest, opened.config, workspace.root, opened.name)
        bank, settings = opened.bank(), opened.config.bank
        assert settings is not None
        retrieval = settings.retrieval.model_copy(update={"scoped": settings.retrieval.scoped and scope is not None})
        asked = settings.model_copy(update={"retrieval": retrieval})
        with in_stage("searches the bank"):
            index = index_of(bank, opened.config.model_copy(update={"bank": asked}))
            hits = index.search(query, scope or "")
    lacking = "" if scope is None else Lacking(index).of_pool(scope, bool(hits))
    rows = [{"score": hit.score, **asdict(hit.entry)} for hit in hits]
    _print(rows, HIT_COLUMNS, as_json, "" if lacking else f"Nothing in {opened.name} matches {query!r}.")
    if lacking and not as_json:
        output.line(f"{opened.name}: {lacking}")


@app.command()
def diff(
    old: Annotated[str, typer.Argument(metavar="RUN@N", help="Revision to start from.")],
    new: Annotated[str, typer.Argument(metavar="RUN@M", help="Revision to compare with it.")],
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Show the changes of the bank between two revisions.

    Example: coevo bank diff homerules-coevo-rl-1@2 homerules-coevo-rl-1@9
    """
    from coevo.memory.admission.rulings import reasons
    from coevo.memory.bank.diff import diff as compare

    workspace = workspace_at(directory)
    with reading(old, workspace) as before, reading(new, workspace) as after:
        found = compare(before.bank().rows(), after.bank().rows())
        why_retired = reasons(after.bank().operations())
    rows = [
        *(_change("added", entry) for entry in found.added),
        *(_change("edited", entry, was) for was, entry in found.edited),
        *(_change("retired", entry) | {"reason": why_retired.get(entry.id)} for entry in found.retired),
    ]
    _print(
        rows,
        (*DIFF_COLUMNS, "reason") if any(row["reason"] for row in rows) else DIFF_COLUMNS,
        as_json,
        f"{before.name} and {after.name} hold the same entries.",
    )


app.command()(train_writer)
app.command()(why)
app.command()(retrieval)
app.command()(rejects)
app.command()(retire)
app.command()(test)
app.command()(export)
app.command("import")(import_)
app.command()(serve)
app.command()(token)


def _entry_rows(opened: Reading) -> "tuple[list[dict[str, Any]], RetrievalCounts | None]":
    from coevo.memory.stats import retrieval_counts

    bank = opened.bank()
    stats, latest = bank.stats(), latest_credits(bank.left_out())
    rows = [
        asdict(entry)
        | {name: getattr(stats.get(entry.id), name, 0) for name in ("retrievals", "successes")}
        | {name: latest.get(entry.id, {}).get(name) for name in CREDIT_COLUMNS}
        for entry in sorted(bank.active(), key=lambda entry: (entry.scope, entry.strategy))
    ]
    return rows, retrieval_counts((row["id"] for row in rows), stats)


def _texts(entries: tuple[Entry, ...]) -> list[dict[str, str]]:
    return [{"id": entry.id, "strategy": entry.strategy} for entry in entries]


def _named(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]}, and {len(texts) - 1} more"


def _change(change: str, entry: Entry, was: Entry | None = None) -> dict[str, Any]:
    return {"change": change, **asdict(entry), "was": None if was is None else was.strategy, "reason": None}


def _print(rows: list[dict[str, Any]], columns: tuple[str, ...], as_json: bool, empty: str) -> None:
    if as_json:
        output.document(rows)
    elif rows:
        output.table(rows, columns)
    elif empty:
        output.line(empty)
