"""An import is a new revision or nothing: what it adds, what it refuses, and what a kill leaves."""

import hashlib
import json
import re
import shutil
import signal
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from support import runs
from support.fsck import fingerprint
from support.small_run import EDITED, HEAT, MICROWAVE, MUG, REJECTED, SAFE, entry

from coevo.configs.load.load import load_recipe
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.stats import Stats
from coevo.records.entry import TEXTS
from coevo.tasks.run.by_hand import _worth
from coevo.tasks.run.open_run import episodes_since

NEW = entry("lotus plate in drawer", "plate", "go drawer")


@pytest.fixture
def workspace(copied):
    """A copy of the workspace that may be changed."""
    return Workspace(copied)


@pytest.fixture
def notes(tmp_path):
    """Two entries that the first run lacks."""
    return write(tmp_path / "notes.jsonl", NEW, REJECTED)


def write(path, *entries):
    path.write_text("".join(f"{json.dumps(asdict(entry))}\n" for entry in entries))
    return path


def bank(coevo, run):
    return json.loads(coevo("bank", "show", run, "--json").out)


def texts(rows):
    """Hash of the text fields of entries."""
    content = sorted([row[name] for name in TEXTS] for row in rows)
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def kept(workspace):
    """Contents of a run: its commits and tags, its work tree, its tables, its quarantine."""
    paths = workspace.existing("first")
    files, held = fingerprint(paths.lineage), Bank(paths.bank)
    files = {name: content for name, content in files.items() if not re.search(r"\.git/(?!refs)|/tmp", name)}
    return files, held.versions(), held.hashes(), paths.quarantine.exists()


@pytest.mark.parametrize(
    ("recipe", "worth"), [("homerules-memrl-style", 0.0), ("homerules-jerp", 1.0), ("homerules-coevo-rl", None)]
)
def test_what_is_imported_begins_with_the_worth_of_a_new_entry(recipe, worth):
    run = SimpleNamespace(read_config=lambda: load_recipe(recipe))
    held = SimpleNamespace(stats=lambda: {REJECTED.id: Stats(REJECTED.id, retrievals=3)})
    found = _worth([NEW, REJECTED], run, held)
    assert found == (() if worth is None else (Stats(NEW.id, utility=worth),))


@pytest.mark.parametrize("name", ["bank.jsonl", "bank.parquet"])
def test_a_bank_goes_from_one_run_to_another(name, coevo, workspace, tmp_path):
    coevo("rollback", "other", "--to", 0)
    assert f"Wrote 2 entries of first@{3}" in coevo("bank", "export", "first", tmp_path / name).out
    made = coevo("bank", "import", "other", tmp_path / name)
    assert (made.code, made.err) == (0, "")
    assert "other@5: added 2 entries, skipped 0 known ones" in made.out
    assert made.out.splitlines()[-1] == f"Continue with: coevo resume other --workspace {workspace.root}"
    assert texts(bank(coevo, "other")) == texts(bank(coevo, "first"))
    assert {row["created"] for row in bank(coevo, "other")} == {5}
    assert "2 imported" in coevo("log", "other").out


def test_export_writes_the_bank_of_the_revision(coevo, tmp_path):
    coevo("bank", "export", "first@1", tmp_path / "bank.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "bank.jsonl").read_text().splitlines()]
    assert {row["strategy"] for row in rows} == {SAFE, HEAT}


def test_the_revision_repeats_all_but_the_bank_and_marks_sources_of_another_run(coevo, workspace, notes, tmp_path):
    paths = workspace.existing("first")
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        before = lineage.history.head().state
        coevo("bank", "import", "first", notes)
        after = lineage.history.head().state
        changed = {name for name in after if after[name] != before.get(name)}
        assert changed == {"revision", "parent", "artifacts", "tables", "metrics", "imported", "panels", "outcomes"}
        assert after["artifacts"]["policy"] == before["artifacts"]["policy"]
        assert {name for name in after["tables"] if after["tables"][name] != before["tables"][name]} == {"entries"}
        digest = hashlib.sha256(notes.read_bytes()).hexdigest()
        assert after["imported"] == {"file": digest, "added": 2, "known": 0}
        assert after["metrics"] == {"bank/imported": 2.0, "bank/size": 4.0}
        assert lineage.recover(Bank(paths.bank)).tables == ()
        head = lineage.history.head()
        assert episodes_since(lineage, head, 3, tmp_path / "none") == []  # they do not count twice
        assert [each.revision for each in episodes_since(lineage, head, 2, tmp_path / "some")] == [3] * 4
    story = json.loads(coevo("bank", "why", "first", NEW.id, "--json").out)
    theirs = [f"import-{digest[:12]}/{name}" for name in NEW.sources]
    assert [taught["episode"] for taught in story["taught_by"]] == theirs
    assert story["taught_by"][0]["success"] is None


def test_what_the_bank_holds_changes_nothing(coevo, workspace, tmp_path):
    coevo("bank", "export", "first", tmp_path / "bank.jsonl")
    before = fingerprint(workspace.root / "runs/first/lineage/.git/refs")
    said = coevo("bank", "import", "first", tmp_path / "bank.jsonl")
    assert (said.code, "already holds all 2 entries" in said.out) == (0, True)
    spelled = write(tmp_path / "spelled.jsonl", replace(MICROWAVE, strategy=f" {MICROWAVE.strategy}."))
    assert "already holds all 1 entries" in coevo("bank", "import", "first", spelled).out
    assert fingerprint(workspace.root / "runs/first/lineage/.git/refs") == before
    coevo("bank", "import", "first", write(tmp_path / "more.jsonl", NEW, MICROWAVE))
    assert "1 imported" in coevo("log", "first").out


def test_a_retired_entry_comes_back(coevo, workspace, tmp_path):
    coevo("bank", "import", "first", write(tmp_path / "one.jsonl", NEW))
    paths = workspace.existing("first")
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        from coevo.memory.bank.change import BankChange

        held = Bank(paths.bank)
        held.merge(BankChange(entries=(replace(NEW, retired=4),)))
        head = lineage.history.head()
        lineage.commit({}, {**head.state, "tables": held.hashes()}, {"tables": held.versions(), "metrics": {}})
    assert NEW.strategy not in {row["strategy"] for row in bank(coevo, "first")}
    coevo("bank", "import", "first", tmp_path / "one.jsonl")
    assert NEW.strategy in {row["strategy"] for row in bank(coevo, "first")}


CONFLICTS = {
    "another condition": (
        replace(MICROWAVE, condition="cool"),
        "condition = 'cool': the bank has 'heat mug' for entry",
    ),
    "edited since": (MUG, f"strategy = '{SAFE}': the bank has '{EDITED.strategy}' for entry {MUG.id}: remove the row"),
    "an evaluation": (replace(NEW, split="seen-houses"), "split = 'seen-houses'"),
    "a climbing id": (replace(NEW, id="../../first"), "id = '../../first'"),
    "half a character": (
        replace(NEW, condition="mug \ud800"),
        "condition = 'mug \\ud800': holds the control character U+D800",
    ),
}


def test_one_bad_row_refuses_the_file_and_changes_nothing(refused, workspace, tmp_path):
    before = kept(workspace)
    for name, (row, says) in CONFLICTS.items():
        said = refused("bank", "import", "first", write(tmp_path / "bad.jsonl", REJECTED, row))
        assert f"bad.jsonl line 2: {says}" in said, name
    assert kept(workspace) == before


MISTAKES = {
    "import nope notes.jsonl": "No run 'nope'",
    "import new notes.jsonl": "no revision yet",
    "import bankless notes.jsonl": "has no bank",
    "import first@2 notes.jsonl": "cannot name a run",
    "import first none.jsonl": "no such file",
    "import first .": "ends in .parquet or .jsonl",
    "export bankless x.jsonl": "has no bank",
    "export first@9 x.jsonl": "it has 0 to 3",
    "export first x.csv": "ends in .parquet or .jsonl",
    "export first none/x.jsonl": "No such file or directory",
    "export first notes.jsonl": "already there",
}


def test_a_mistake_is_one_line_and_changes_nothing(refused, small_workspace, notes, monkeypatch):
    monkeypatch.chdir(notes.parent)
    before = fingerprint(small_workspace), fingerprint(notes.parent)
    for line, says in MISTAKES.items():
        assert says in refused("bank", *line.split()), line
    assert (fingerprint(small_workspace), fingerprint(notes.parent)) == before


def test_a_cursor_ahead_of_the_history_is_refused_since_the_revision_would_count_as_published(
    refused, workspace, notes
):
    Cursor(workspace.existing("first").published).advance(4)
    before = kept(workspace)
    said = refused("bank", "import", "first", notes)
    assert "says that revision 4 is published, but the last is 3: repair it with `coevo fsck first --repair`" in said
    assert kept(workspace) == before


def test_a_run_in_use_is_refused_and_one_that_is_not_is_published(coevo, refused, workspace, notes):
    with writer_lock(workspace.existing("first")):
        assert "in use" in refused("bank", "import", "first", notes)
    assert coevo("bank", "import", "first", notes).err == ""
    assert Cursor(workspace.existing("first").published).read() == 4


KILLS = (
    "coevo.memory.bank.bank:Bank.merge@1+",
    "coevo.lineage.objects.artifacts:Artifacts.add@1+",
    "coevo.lineage.repository:Repository.commit@1",
    "coevo.lineage.repository:Repository.commit@1+",
)
GATE = ["coevo.tasks.run.by_hand:check_bank"]
"""Left out since it writes nothing, and importing it takes seconds."""


@pytest.mark.full
def test_a_kill_leaves_the_old_revision_or_the_new_one(coevo, workspace, notes, tmp_path):
    old, new = (
        [replace(entry, sources=()) for entry in Bank(workspace.existing("first").bank).active()],
        (NEW, REJECTED),
    )
    for kill in KILLS:
        root = tmp_path / kill
        shutil.copytree(workspace.root, root)
        dead = runs.coevo("bank", "import", "first", str(notes), workspace=root, kill=kill, without=GATE)
        assert dead.returncode == -signal.SIGKILL, f"{kill}: not reached: {dead.stderr}"
        paths = Workspace(root).existing("first")
        held = Bank(paths.bank)
        with Lineage.open(paths.lineage, root / "cache") as lineage:
            lineage.recover(held)
            committed = lineage.history.head().revision == 4
        assert committed == (kill == KILLS[-1])
        assert {each.id for each in held.active()} == {each.id for each in (*old, *(new if committed else ()))}
        said = coevo("bank", "import", "first", notes, "--workspace", root)
        assert ("holds all 2" in said.out) == committed
        assert len(runs.states(root, "first")) == 5
        shutil.rmtree(root)
