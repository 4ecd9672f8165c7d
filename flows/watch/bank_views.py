"""Values of the templates of the pages about a bank: its entries, one lesson, and the candidates of a revision."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import groupby

from coevo.configs.bank.retrieval_config import Bm25Config, TfidfConfig
from coevo.configs.load.load import validate
from coevo.flows.history.played_episodes import entry_tests
from coevo.flows.history.verdicts import credit_row, ruling_row, verdict_row, writer_of
from coevo.flows.watch.entry_queries import PAGE_ROWS, IndexRow
from coevo.flows.watch.index_build import UNREADABLE
from coevo.flows.watch.index_queries import IndexReader
from coevo.flows.watch.run_views import PageQuery, PageValues, number
from coevo.flows.watch.watched_run import WatchedRun
from coevo.memory.bank.bank import BankView
from coevo.memory.retrieval.index import Index
from coevo.records.entry import Entry
from coevo.tasks.bank_alone.bank_reader import SIMILAR as LEAST_SIMILARITY
from coevo.tasks.bank_alone.bank_reader import contradict, gains_of
from coevo.utilities.errors import CoevoError

SIMILAR = 5
"""Most similar entries on a card."""
MAX_ALIKE = 20
"""Most similar entries that are looked at for a contradiction."""
MAX_SEARCHED = 2000
"""Most entries of a bank that a page searches as retrieval does; it builds their index for each request."""


def bank(run: WatchedRun, reader: IndexReader, query: PageQuery) -> PageValues:
    """The bank, and what changed in it against another revision."""
    page, scope = number(query, "page") or 0, query.get("scope") or None
    since = number(query, "from")
    since = reader.row()["predecessor"] if since is None else min(since, reader.last)
    text, unread = query.get("q", "")[:200], bool(query.get("unread"))
    found = reader.entries.page(text, scope, page, unread)
    return {
        "found": found,
        "search": _retrieved(run, reader, text, scope) if text.strip() else None,
        "groups": [(scope, list(rows)) for scope, rows in groupby(found.rows, key=lambda row: row["scope"])],
        "since": since,
        "changes": None if since is None else reader.entries.changes(since),
        "q": text,
        "unread": unread,
        "scope": scope,
        "page": page,
        "pages": -(-found.total // PAGE_ROWS),
        "has_bank": reader.manifest().state["config"]["bank"] is not None,
        "unknown": reader.lacks_bank(),
    }


def _retrieved(run: WatchedRun, reader: IndexReader, text: str, scope: str | None) -> PageValues:
    """Lessons that retrieval gives for a text and a scope, best first, with the command that says the same.

    ``hits`` is None where a page cannot search at once: with a retrieval that needs more than the texts, or in a large
    bank.
    """
    command = ["coevo", "bank", "search", f"{run.name}@{reader.revision}", text, *(["--scope", scope] if scope else [])]
    found: PageValues = {"command": shlex.join(command), "hits": None}
    rows = reader.entries.active()
    try:
        settings = validate(dict(reader.manifest().state["config"]), source=run.name).bank
    except UNREADABLE:
        return found
    if settings is None or not isinstance(settings.retrieval, TfidfConfig | Bm25Config) or len(rows) > MAX_SEARCHED:
        return found
    asked = settings.retrieval.model_copy(update={"scoped": settings.retrieval.scoped and scope is not None})
    hits = Index([_entry(row) for row in rows], asked).search(text, scope or "")
    return found | {"hits": [{"score": hit.score, "id": hit.entry.id, "text": hit.entry.strategy} for hit in hits]}


def candidates(run: WatchedRun, reader: IndexReader, query: PageQuery) -> PageValues:
    """Candidates that a revision judged, rejected ones first, and its edit operations, as ``coevo bank log`` says."""
    found: PageValues = {"judged": [], "rulings": [], "missing": "", "before": reader.rejecting()}
    try:
        bank = run.bank(reader.manifest())
        judged, rulings = bank.judged(revision=reader.revision), bank.operations(revision=reader.revision)
    except UNREADABLE as error:
        return found | {"missing": " ".join(str(error).split())}
    history = {reader.revision: reader.manifest()}
    rows = [
        verdict_row(each, history)
        | {
            "lessons": [(entry, bool(reader.entries.spans(entry.id))) for entry in each.candidates],
            "verdict": "admitted" if each.verdict.admitted else "rejected",
        }
        for each in judged
    ]
    return found | {
        "judged": sorted(rows, key=lambda row: row["verdict"] == "admitted"),
        "rulings": [ruling_row(each) for each in rulings],
    }


def lesson(run: WatchedRun, reader: IndexReader, query: PageQuery, name: str) -> PageValues:
    """The card of an entry."""
    spans = reader.entries.spans(name)
    if not spans:
        raise CoevoError(f"entry {name!r} is not in the bank of {run.name}, nor was it")
    known = [span for span in spans if span["since"] <= reader.revision] or spans[:1]
    now, active = known[-1], known[-1]["until"] is None or known[-1]["until"] > reader.revision
    entry = _entry(now)
    life, alike = reader.entries.life(entry), reader.entries.similar(now, MAX_ALIKE)
    made = reader.manifest(min(entry.created, reader.last))
    page = {
        "entry": now,
        "unknown": reader.lacks_bank(),
        "active": active and known[-1]["since"] <= reader.revision,
        "spans": spans,
        "life": life,
        "gain": life.interval,
        "beside": [(life.expected + gain) / life.compared for gain in (life.gain, 0.0)]
        if life.compared
        else [None] * 2,
        "uses": reader.entries.uses(name),
        "held_out": reader.entries.held_out_uses([name]).get(name, 0),
        "readers": reader.episodes.readers(name),
        "tests": entry_tests(run.paths, name),
        "similar": alike[:SIMILAR],
        "contradicting": [],
        "sources": [(source, reader.episodes.source(source)) for source in entry.sources],
        "writer": writer_of(made),
        "verdicts": [],
        "credits": [],
        "rulings": [],
        "answers": [],
        "missing": "",
    }
    try:
        page |= _judged(run, reader, entry, alike)
        decode = run.decoder()
        for each in run.answers(made, entry.sources):
            drawn = each.reply.drawn
            page["answers"].append((each, None if drawn is None else decode(drawn.prompt_ids)))
    except UNREADABLE as error:
        page["missing"] = " ".join(str(error).split())
    return page


def _entry(row: IndexRow) -> Entry:
    values = {field.name: row[field.name] for field in fields(Entry)}
    return Entry(**values | {"sources": tuple(row["sources"])})


def _judged(run: WatchedRun, reader: IndexReader, entry: Entry, alike: Sequence[tuple[float, IndexRow]]) -> PageValues:
    bank = run.bank(reader.manifest())
    judged, left_out, rulings = bank.judged(entry.id), bank.left_out(entry.id), bank.operations(entry.id)
    history = {each.verdict.revision: reader.manifest(each.verdict.revision) for each in judged}
    return {
        "verdicts": [verdict_row(each, history) for each in judged],
        "credits": [credit_row(each) for each in left_out],
        "rulings": [ruling_row(each) for each in rulings],
        "contradicting": _contradicting(bank, entry, gains_of([*judged, *left_out]), alike),
    }


def _contradicting(
    bank: BankView, entry: Entry, gain: Mapping[str, float], alike: Sequence[tuple[float, IndexRow]]
) -> list[IndexRow]:
    """Similar entries whose gain by replay has the other sign, with both gains, as the health report has them."""
    if entry.id not in gain:
        return []
    found = list[IndexRow]()
    for score, row in alike:
        if score < LEAST_SIMILARITY:
            continue
        gains = {**gain, **gains_of([*bank.judged(row["id"]), *bank.left_out(row["id"])])}
        if contradict(entry, _entry(row), gains):
            found.append({**row, "similarity": score, "gain": gains[row["id"]], "own": gains[entry.id]})
    return found
