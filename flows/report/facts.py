"""Data of a report, read once: revisions, entries with their lives and stories, verdicts, operations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coevo.flows.history import history
from coevo.flows.history.expenses import Expense, expenses
from coevo.flows.history.revision_reference import Reading
from coevo.flows.history.run_summaries import run_summary
from coevo.flows.history.verdicts import latest_credits, ruling_row, verdict_row
from coevo.flows.report.graph import Offshoot, offshoots
from coevo.flows.report.lives import COLUMNS, Life, extremes, lives
from coevo.flows.report.outcomes import held_out_rows, panel_descriptions
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import RunStatus
from coevo.lineage.workspace import Workspace
from coevo.tasks.cost import Spent, spending

if TYPE_CHECKING:
    from coevo.memory.bank.change import Judged, Ruling
    from coevo.memory.stats import RetrievalCounts

TOP = 10
"""Entries at either end of the ranking whose stories are shown."""
TOLD_COLUMNS = ("id", "instruction", "success", "turns.list.element.action")


@dataclass(frozen=True)
class Story:
    """Origin of an entry: ``episodes`` are rows of ``TOLD_COLUMNS``; ``verdicts`` and ``rulings`` concern the entry."""

    life: Life
    episodes: tuple[Mapping[str, Any], ...]
    verdicts: tuple[Mapping[str, Any], ...]
    rulings: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class ReportData:
    """All data of a report.

    Attributes:
        name: ``RUN@N``.
        status: status of the run, whichever revision the report is of.
        manifests: manifests of revisions 0 to N.
        commits: commit of each revision.
        kept: revisions that are retained in full.
        tags: revision by tag.
        offshoots: runs branched from this one.
        spent: cost up to each revision.
        parts: expense by part up to revision N.
        sizes: active entries at each revision.
        lives: lives by entry id, in order of creation; empty without a bank.
        retrievals: how often the active entries were retrieved; None if there are none.
        highest: stories of the entries whose episodes succeeded most compared with others of their kind; ``lowest`` of
            those whose episodes succeeded least. Both are associations.
        judged: verdicts of replay, oldest first.
        rulings: outcomes of edit operations, oldest first.
        credits: latest measurement of each entry by leaving it out, by id.
        gone: revisions whose episodes were dropped, so that uses in them are unknown.
        evaluated: the last evaluated revision; None without one.
        held_out: rows of the held-out episodes that it keeps.
        about: description of each panel.
        overrides: settings that were given beside the recipe, as they were written.
    """

    name: str
    status: RunStatus
    manifests: Sequence[Manifest]
    commits: Sequence[str]
    kept: frozenset[int]
    tags: Mapping[str, int]
    offshoots: Sequence[Offshoot]
    spent: Sequence[Spent]
    parts: Sequence[Expense]
    sizes: Sequence[int | None]
    lives: Mapping[str, Life]
    retrievals: "RetrievalCounts | None"
    highest: Sequence[Story]
    lowest: Sequence[Story]
    judged: Sequence["Judged"]
    rulings: Sequence["Ruling"]
    credits: Mapping[str, Mapping[str, Any]]
    gone: Sequence[int]
    evaluated: int | None
    held_out: Sequence[Mapping[str, Any]]
    about: Mapping[str, str]
    overrides: Sequence[str]


def facts(opened: Reading, workspace: Workspace) -> ReportData:
    """Read the data of a report.

    Raises:
        CoevoError: the revision was dropped, or a part of it is damaged.
    """
    manifests, last = opened.history, opened.manifest.revision
    found, retrievals, judged, rulings = _of_bank(opened)
    highest, lowest = extremes(found, TOP)
    stories = _stories(opened, [*highest, *lowest], judged, rulings)
    evaluated, held_out = held_out_rows(opened)
    return ReportData(
        name=opened.name,
        status=run_summary(opened.paths, workspace).status,
        manifests=manifests,
        commits=opened.lineage.history.commits()[: last + 1],
        kept=frozenset(opened.lineage.history.retained()),
        tags={name: revision for name, revision in sorted(opened.lineage.history.names().items()) if revision <= last},
        offshoots=offshoots(opened.lineage, opened.paths.name, workspace, last),
        spent=spending(manifests),
        parts=expenses(manifests)[-1],
        sizes=history.bank_sizes(manifests),
        lives=found,
        retrievals=retrievals,
        highest=stories[: len(highest)],
        lowest=stories[len(highest) :],
        judged=judged,
        rulings=rulings,
        credits=_credits(opened),
        gone=opened.episodes_gone(),
        evaluated=evaluated,
        held_out=held_out,
        about=panel_descriptions(opened.manifest.state["config"]["env"]["type"]),
        overrides=opened.paths.overrides,
    )


def _of_bank(
    opened: Reading,
) -> tuple[dict[str, Life], "RetrievalCounts | None", list["Judged"], list["Ruling"]]:
    from coevo.memory.stats import retrieval_counts

    if opened.manifest.state["config"]["bank"] is None:
        return {}, None, [], []
    bank = opened.bank()
    counts = retrieval_counts((entry.id for entry in bank.active()), bank.stats())
    return lives(bank.entries(), opened.episode_tables(COLUMNS)), counts, bank.judged(), bank.operations()


def _credits(opened: Reading) -> dict[str, dict[str, Any]]:
    return {} if opened.manifest.state["config"]["bank"] is None else latest_credits(opened.bank().left_out())


def _stories(
    opened: Reading, shown: Sequence[Life], judged: Iterable["Judged"], rulings: Iterable["Ruling"]
) -> list[Story]:
    wanted = {source for life in shown for source in life.entry.sources}
    revisions = {int(head) for source in wanted if (head := source.partition("/")[0]).isdecimal()}
    rows = {row["id"]: row for table in opened.episode_tables(TOLD_COLUMNS, revisions) for row in _rows(table, wanted)}
    names = {life.entry.id for life in shown}
    verdicts = [(set(each.verdict.candidates) & names, verdict_row(each, opened.history)) for each in judged]
    changes = [(set(each.entries) & names, ruling_row(each)) for each in rulings]
    return [
        Story(
            life,
            tuple(rows[source] for source in life.entry.sources if source in rows),
            tuple(row for concerned, row in verdicts if life.entry.id in concerned),
            tuple(row for concerned, row in changes if life.entry.id in concerned),
        )
        for life in shown
    ]


def _rows(table: Any, wanted: Iterable[str]) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    found: list[dict[str, Any]] = table.filter(
        pc.is_in(table["id"], value_set=pa.array(sorted(wanted), pa.string()))
    ).to_pylist()
    return found
