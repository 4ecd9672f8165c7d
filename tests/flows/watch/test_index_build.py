"""The index says the same as the commands that read the stores, whatever a run has been through."""

import sqlite3
from dataclasses import asdict

import pytest
from support import small_run
from support.watched import DrawnRun

from coevo.flows.history.history import bank_sizes
from coevo.flows.history.revision_reference import reading
from coevo.flows.history.stored_episodes import EpisodeFilter, episode_rows
from coevo.flows.report.lives import COLUMNS, lives
from coevo.flows.upkeep.branch import branch
from coevo.flows.upkeep.gc import collect
from coevo.flows.watch.index_build import RunIndex
from coevo.flows.watch.index_queries import IndexReader
from coevo.lineage.git import Git
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.revision.retention import RetentionRule
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import why
from coevo.memory.bank.change import BankChange
from coevo.memory.bank.diff import diff
from coevo.memory.bank.table import FollowedTable

STEPS = 9


def agree(paths, workspace):
    """Compare the index with the readers of the stores, at every revision and between all of them."""
    index = RunIndex(paths)
    with reading(paths.name, workspace) as opened:
        kept = opened.lineage.history.retained()
        banks = {number: opened.bank(number).rows() for number in kept}
        sizes = bank_sizes(opened.history)
    for number in kept:
        with IndexReader.opened(index.file, number) as found:
            rows = found.entries.page(page=0)
            assert rows.total == sizes[number] == len(rows.rows)
            for other in kept:
                wanted, said = diff(banks[other], banks[number]), found.entries.changes(other)
                assert [row["id"] for row in said["added"]] == [each.id for each in wanted.added]
                assert [row["id"] for row in said["retired"]] == [each.id for each in wanted.retired]
                assert [(row["was"], row["strategy"]) for row in said["edited"]] == [
                    (was.strategy, new.strategy) for was, new in wanted.edited
                ]
        if number % 4 == 3 or number == kept[-1]:
            _uses_agree(index, number, paths, workspace)


def _uses_agree(index, number, paths, workspace):
    with (
        reading(f"{paths.name}@{number}", workspace) as opened,
        IndexReader.opened(index.file, number) as found,
    ):
        told, entries = list(opened.episodes()), opened.bank().entries()
        whole = lives(entries, opened.episode_tables(COLUMNS))
        for entry in entries:
            retrieved = why(opened.bank(), entry.id, told).retrievals
            counts = found.entries.uses(entry.id)
            assert sum(row["shown"] for row in counts) == len(retrieved)
            assert sum(row["solved"] for row in counts) == sum(each.success for each in retrieved)
            life = found.entries.life(entry)
            assert (life.uses, life.gain) == (whole[entry.id].uses, pytest.approx(whole[entry.id].gain))
            assert life.variance == pytest.approx(whole[entry.id].variance)


@pytest.mark.parametrize("seed", range(3))
def test_a_drawn_history_reads_as_from_the_stores(tmp_path, seed):
    run = DrawnRun(tmp_path, seed)
    index = RunIndex(run.paths)
    if seed % 2:  # a revision at a time, as beside a running process
        for _ in range(STEPS):
            index.update()
            run.step()
    else:
        for _ in range(STEPS):
            run.step()
    index.update()
    agree(run.paths, run.workspace)
    if seed == 1:
        with reading("drawn@5", run.workspace) as opened:
            branch(opened, "twig", [], run.workspace)
        twig = run.workspace.existing("twig")
        RunIndex(twig).update()
        agree(twig, run.workspace)
    if seed == 2:
        cursor = Cursor(run.paths.published)
        cursor.advance(run.revision - 1)
        cursor.close()
        plan, _ = collect(run.workspace, ["drawn"], RetentionRule(last=3, every=4))
        assert plan
        index.update()
        agree(run.paths, run.workspace)


def test_a_new_revision_starts_no_process_and_reads_no_bank_that_is_as_before(tmp_path, monkeypatch):
    run = DrawnRun(tmp_path, 0)
    index, ask = RunIndex(run.paths), Git.attempt
    index.update()
    for kind in ("admit", "nothing", "edit"):
        run.commit(BankChange(entries=tuple(run.changed(kind))))
        with monkeypatch.context() as patch:
            patch.setattr(Git, "attempt", lambda git, *words, **more: pytest.fail(f"git {words[0]}"))
            if kind == "nothing":
                patch.setattr(FollowedTable, "rows", lambda *_: pytest.fail("it read the bank"))
            assert index.update() == 1
    run.commit(BankChange(entries=tuple(run.changed("admit"))))
    ask(Git(run.paths.lineage), "repack", "-a", "-d", "-q")
    assert index.update() == 1
    agree(run.paths, run.workspace)


@pytest.fixture
def small(tmp_path):
    return small_run.build(tmp_path), Workspace(tmp_path)


def test_episodes_and_reasons_are_those_of_the_command(small):
    paths, workspace = small
    RunIndex(paths).update()
    for number in range(4):
        for training in (True, False):
            if training or number in (0, 2, 3):
                with reading(f"first@{number}", workspace) as opened:
                    wanted = episode_rows(opened, EpisodeFilter(training=training))
                with IndexReader.opened(RunIndex(paths).file, number) as found:
                    said = [
                        row
                        for panel in found.episodes.panels()
                        if (panel == "training") == training
                        for row in found.episodes.chosen(panel, {})
                    ]
                named = ("id", "panel", "kind", "success", "reward", "reason", "lessons", "turns")
                assert sorted([row[name] for name in named] for row in said) == sorted(
                    [row[name] for name in named] for row in wanted
                )


def content(file):
    with sqlite3.connect(file) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(map(str, database.execute(f"SELECT * FROM {name}"))) for name in names}


def harm_bytes(file):
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(100)
        opened.write(b"\xff" * (size - 100))


def harm_version(file):
    with sqlite3.connect(file) as database:
        database.execute("UPDATE meta SET value = '0' WHERE key = 'version'")


def harm_creation(file):
    with sqlite3.connect(file) as database:
        database.execute("UPDATE meta SET value = '5' WHERE key = 'created'")


def harm_history(file):
    with sqlite3.connect(file) as database:
        database.execute("UPDATE meta SET value = 'f' WHERE key = 'commit'")
        database.execute("DELETE FROM bank")


HARMS = {
    "missing": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "no database": lambda file: file.write_bytes(b"no database at all" * 400),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:5000]),
    "bytes": harm_bytes,
    "older version": harm_version,
    "another run of this name": harm_creation,
    "another history": harm_history,
}


@pytest.mark.parametrize("is_kept", [False, True], ids=["by another process", "by the one that made it"])
@pytest.mark.parametrize("harm", HARMS)
def test_an_index_that_does_not_fit_is_built_again(small, harm, is_kept):
    paths, _ = small
    index = RunIndex(paths)
    index.update()
    for suffix in ("-wal", "-shm"):
        index.file.with_name(index.file.name + suffix).unlink(missing_ok=True)
    before = content(index.file)
    HARMS[harm](index.file)
    (index if is_kept else RunIndex(paths)).update()
    assert content(index.file) == before


def test_the_spans_of_a_lesson_are_its_wordings(small):
    paths, _ = small
    RunIndex(paths).update()
    with IndexReader.opened(RunIndex(paths).file) as found:
        spans = found.entries.spans(small_run.MUG.id)
        assert [(span["since"], span["until"]) for span in spans] == [(1, 3), (3, None)]
        assert {name: spans[0][name] for name in ("strategy", "created")} == {
            name: asdict(small_run.MUG)[name] for name in ("strategy", "created")
        }
        assert [row["id"] for row in found.entries.page("LOTUS mug IN drawer").rows] == [small_run.MUG.id]
        assert found.entries.page("lotus mug in fridge").total == 0
