"""``coevo bank retrieval``: quality of retrieval over the bank of a run."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, TrustOption, WorkspaceOption, workspace_at
from coevo.flows.console.trust_prompt import trust_run
from coevo.flows.history.revision_reference import Reading, reading
from coevo.records.entry import Entry
from coevo.records.task import Task, key_by
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.configs.bank.retrieval_config import AnyRetrievalConfig
    from coevo.memory.library import Library
    from coevo.memory.retrieval.quality import Query
    from coevo.memory.retrieval.scorer import Score

COLUMNS_READ = ("id", "env", "kind", "instruction", "scope", "split", "data")
SHOWN = ("hit_at_1", "hit_at_3", "mrr")
MEASURES = (*SHOWN, "precision")


def retrieval(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, or one of its revisions.")],
    pools: Annotated[
        str | None,
        typer.Option(metavar="N,...", help="Sizes of pools; by default 5, 10, 20, 50, 100 and so on below the bank's."),
    ] = None,
    unscoped: Annotated[
        bool, typer.Option("--unscoped", help="Search the whole bank, also if training searches the task's pool.")
    ] = False,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Measure how well each retrieval finds the entries of a task again (CoEvo-RL Table 2).

    A query is the instruction of a training task that entries were written from. Entries from this task are right.
    `hit at 1`, `hit at 3`: share of queries with a right entry first, or among the first three. `mrr`: mean reciprocal
    rank of the first right entry. Brackets: 95 % over tasks. Equal scores count as any order of them. With --json,
    also `precision`: share of right ones among the bank.retrieval.k entries that are retrieved.

    `pool`: number of entries searched, a right one and others drawn at random; `all`: every entry that training would
    search. `random` is the baseline of a random order. No task of an evaluation panel is read.

    Example: coevo bank retrieval homerules-coevo-rl-1 --pools 5,20,100
    """
    from coevo.configs.load.open_parts import open_parts
    from coevo.tasks.publish.reporter import in_stage
    from coevo.tasks.run.weight_digests import check_weights

    sizes, workspace = _sizes(pools), workspace_at(directory)
    with reading(run, workspace) as opened:
        trust_run(workspace, opened.paths.name, opened.config, trust, ask=not as_json)
        open_parts(opened.config, "bank.retrieval")
        check_weights(opened.manifest, opened.config, workspace.root, opened.name)
        with in_stage("measures each retrieval"):
            found = _measured(opened, sizes, unscoped)
    if as_json:
        output.document(found)
    elif not found["entries"]:
        output.line(f"The bank of {found['run']} is empty.")
    elif not found["tasks"]:
        output.line(f"No entry of {found['run']} comes from a training episode that is kept: there is no query.")
    else:
        _print(found)


def _sizes(pools: str | None) -> list[int] | None:
    """Sizes of pools in ascending order; None for the usual ones."""
    if pools is None:
        return None
    texts = [text.strip() for text in pools.split(",")]
    if not all(re.fullmatch("[1-9][0-9]{0,7}", text) for text in texts):
        raise CoevoError(f"--pools {pools!r}: write numbers of entries, such as --pools 5,20,100")
    return sorted({int(text) for text in texts})


def _measured(opened: Reading, sizes: list[int] | None, unscoped: bool) -> dict[str, Any]:
    """The document of ``--json``."""
    from coevo.memory.library import Library
    from coevo.memory.retrieval.quality import queries_of, some

    bank, settings, seed = opened.bank(), opened.config.bank, opened.config.seed
    assert settings is not None
    library, scoped = Library(bank.active()), settings.retrieval.scoped and not unscoped
    every = queries_of(library, _tasks(opened, library.entries), key_by(settings.key) if scoped else None)
    queries = some(every, seed)
    scores, refused = _scores(settings.retrieval, library) if queries else ({}, {})
    found = {"run": opened.name, "entries": len(library), "scoped": scoped, "tasks": len(every)}
    rows = _rows(scores, queries, sizes, settings.retrieval.k, seed)
    return found | {"rows": rows, "not_measured": refused}


def _tasks(opened: Reading, entries: Sequence[Entry]) -> dict[str, Task]:
    """Training tasks by the ids of the kept episodes that entries were written from."""
    sources = {source for entry in entries for source in entry.sources}
    rows = (row for table in opened.episode_tables(COLUMNS_READ) for row in table.to_pylist())
    return {row["id"]: _task(row) for row in rows if row["id"] in sources and row["split"] == "train"}


def _task(row: dict[str, Any]) -> Task:
    return Task(row["env"], row["kind"], row["instruction"], row["scope"], row["split"], json.loads(row["data"]))


def _scores(own: "AnyRetrievalConfig", library: "Library") -> "tuple[dict[str, Score], dict[str, str]]":
    """Score functions by name, and the reason for each retrieval that cannot be used on this machine."""
    from coevo.memory.retrieval.quality import by_text, chance
    from coevo.memory.retrieval.scorer import scorer_of

    scores: dict[str, Score] = {"random": chance}
    refused: dict[str, str] = {}
    for config in by_text(own):
        try:
            scores[config.type] = scorer_of(config).fit(library)
        except CoevoError as error:
            refused[config.type] = str(error)
    return scores, refused


def _rows(
    scores: "Mapping[str, Score]", queries: "Sequence[Query]", sizes: list[int] | None, k: int, seed: int
) -> list[dict[str, Any]]:
    from coevo.memory.retrieval.quality import measure, usual_sizes

    pools = (*(usual_sizes(queries) if sizes is None else sizes), None)
    measured = [
        (name, pool, measure(score, queries, pool, k, seed)) for name, score in scores.items() for pool in pools
    ]
    return [
        {"retrieval": name, "pool": pool, "queries": found.queries}
        | {measure: asdict(getattr(found, measure)) for measure in MEASURES}
        for name, pool, found in measured
        if found is not None
    ]


def _print(found: dict[str, Any]) -> None:
    rows = [
        row | {"pool": str(row["pool"] or "all")} | {name: _interval(**row[name]) for name in SHOWN}
        for row in found["rows"]
    ]
    output.table(rows, ("retrieval", "pool", "queries", *SHOWN))
    for name, reason in found["not_measured"].items():
        output.line(f"{name} is not measured: {reason}")
    searched = "its task's pool in the bank" if found["scoped"] else "the whole bank"
    output.line(f"{found['tasks']} training tasks have entries. A query searches {searched}, of {found['entries']}.")


def _interval(mean: float, low: float, high: float) -> str:
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"
