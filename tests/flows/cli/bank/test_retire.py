"""A person takes an entry out of a bank: a revision of its own, with the reason, that a rollback undoes."""

import json
import shutil
import signal

import pytest
from support import runs
from support.fsck import fsck
from support.kept import history, recovered, whole
from support.small_run import EDITED, HEAT, MICROWAVE, MUG, REJECTED

from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.tasks.cost import spending
from coevo.tasks.run.open_run import episodes_since

WHY = "asks for rm -rf /"
RETIRE = ("bank", "retire", "first", MICROWAVE.id, "--reason", WHY, "--by", "ada")


@pytest.fixture
def document(coevo):
    return lambda *arguments: json.loads(coevo(*arguments, "--json").out)


def test_it_leaves_the_bank_once_and_everything_else_stays(copied, coevo, document, tmp_path):
    made = coevo(*RETIRE)
    assert (made.code, made.err) == (0, "")
    assert f"first@4: retired {MICROWAVE.id}  {HEAT}" in made.out
    assert [row["id"] for row in document("bank", "show", "first")] == [MUG.id]
    assert [hit["id"] for hit in document("bank", "search", "first", "heat mug")] == [MUG.id]
    before, after = (manifest.state for manifest in history(copied, "first")[-2:])
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"revision", "parent", "artifacts", "tables", "metrics", "retired", "panels", "outcomes"}
    assert {name for name in after["tables"] if after["tables"][name] != before["tables"][name]} == {
        "entries",
        "operations",
    }
    assert after["artifacts"]["policy"] == before["artifacts"]["policy"]
    assert after["metrics"] == {"bank/retired": 1.0, "bank/size": 1.0}
    assert Cursor(copied / "runs/first/published.json").read() == 4
    spent = spending(history(copied, "first"))  # its episodes do not count twice
    assert (spent[4].episodes, spent[4].tokens) == (spent[3].episodes, spent[3].tokens) == (12, 1200)
    with Lineage.open(copied / "runs/first/lineage", copied / "cache") as lineage:
        assert episodes_since(lineage, lineage.history.head(), 3, tmp_path / "none") == []
    again = coevo(*RETIRE)
    assert (again.code, again.err) == (0, "")
    assert f"{MICROWAVE.id} was already retired in revision 4; nothing was changed." in again.out
    assert len(history(copied, "first")) == 5


def test_who_retired_it_and_why_is_shown(copied, coevo, document):
    shown = coevo(*RETIRE).out.splitlines()
    assert shown[-1] == (
        f"Continue with: coevo resume first --workspace {copied}; "
        f"undo with: coevo rollback first --to 3 --workspace {copied}"
    )
    said = f"{WHY} (retired by ada)"
    row = document("bank", "log", "first")[-1]
    assert [row[key] for key in ("revision", "outcome", "reason", "entries")] == [4, "retired", said, [MICROWAVE.id]]
    story = document("bank", "why", "first", MICROWAVE.id)
    assert (story["entry"]["retired"], story["operations"][-1]["reason"]) == (4, said)
    (gone,) = document("bank", "diff", "first@3", "first@4")
    assert (gone["change"], gone["id"], gone["reason"]) == ("retired", MICROWAVE.id, said)
    for command in (("log", "first"), ("why", "first", MICROWAVE.id), ("diff", "first@3", "first")):
        assert said in coevo("bank", *command).out
    assert "retired in revision 4" in coevo("bank", "why", "first", MICROWAVE.id).out
    assert f"retired {MICROWAVE.id}" in coevo("log", "first").out
    report = copied / "report.html"
    coevo("report", "first", "--output", report)
    assert said in report.read_text()


def test_a_rollback_brings_it_back_and_it_can_be_retired_again(copied, coevo, document):
    whole_before = whole(copied, "first", 3)
    coevo(*RETIRE)
    coevo("rollback", "first", "--to", 3)
    assert whole(copied, "first", 5) == whole_before
    assert MICROWAVE.id in {row["id"] for row in document("bank", "show", "first")}
    assert "first@6: retired" in coevo(*RETIRE).out
    assert [found for found in fsck(copied, "first") if "MLflow" not in found.problem] == []


def test_an_import_brings_it_back_on_purpose(copied, coevo, document, tmp_path):
    coevo("bank", "export", "first@3", tmp_path / "notes.jsonl")
    coevo(*RETIRE)
    assert "added 1 entries" in coevo("bank", "import", "first", tmp_path / "notes.jsonl").out
    assert {row["id"] for row in document("bank", "show", "first")} >= {MICROWAVE.id}
    assert "retired" not in history(copied, "first")[-1].state


MISTAKES = (
    (("first", MICROWAVE.id), "--reason"),
    (("first", MICROWAVE.id, "--reason", " "), "--reason = ' ': is empty"),
    (("first", MICROWAVE.id, "--reason", "x" * 301), "has 301 characters: shorten it to 300"),
    (("first", MICROWAVE.id, "--reason", "a\x1b[2J"), "--reason = 'a\\x1b[2J': holds a character that is not"),
    (("first", MICROWAVE.id, "--reason", "a\nb"), "is not printable"),
    (("first", MICROWAVE.id, "--reason", "a\udc80"), "is not printable"),
    (("first", MICROWAVE.id, "--reason", "x", "--by", "a\u202eb"), "--by = 'a\\u202eb'"),
    (("first", REJECTED.id, "--reason", "x"), f"No entry '{REJECTED.id}'"),
    (("first", "../..", "--reason", "x"), "No entry '../..'"),
    (("first@2", MICROWAVE.id, "--reason", "x"), "cannot name a run"),
    (("bankless", MICROWAVE.id, "--reason", "x"), "has no bank"),
    (("nope", MICROWAVE.id, "--reason", "x"), "'nope'"),
    (("new", MICROWAVE.id, "--reason", "x"), "no revision yet"),
)


def test_a_mistake_or_a_run_in_use_is_one_line_and_changes_nothing(copied, refused):
    before = whole(copied, "first", 3)
    for arguments, says in MISTAKES:
        assert says in refused("bank", "retire", *arguments), arguments
    with writer_lock(Workspace(copied).existing("first")):
        assert "in use" in refused(*RETIRE)
    assert (len(history(copied, "first")), whole(copied, "first", 3)) == (4, before)


KILLS = (
    "coevo.memory.bank.bank:Bank.merge@1",
    "coevo.memory.bank.table:VersionedTable.upsert@1+",
    "coevo.memory.bank.bank:Bank.merge@1+",
    "coevo.lineage.objects.artifacts:Artifacts.add@1+",
    "coevo.lineage.lineage:write_manifest@1+",
    "coevo.lineage.repository:Repository.commit@1",
    "git:commit/refs updated@1",
    "coevo.lineage.repository:Repository.commit@1+",
    "coevo.flows.upkeep.change_by_hand:publish_if_quick@1",
)
COMMITTED = KILLS[-3:]


@pytest.mark.soak
def test_a_kill_leaves_the_old_revision_or_the_new_one(copied, coevo, tmp_path):
    old = whole(copied, "first", 3)
    for number, kill in enumerate(KILLS):
        root = tmp_path / f"{number}"
        shutil.copytree(copied, root)
        dead = runs.coevo(*RETIRE, workspace=root, kill=kill)
        assert dead.returncode == -signal.SIGKILL, f"{kill}: not reached: {dead.stderr}"
        head = recovered(root, "first").revision
        assert head == (4 if kill in COMMITTED else 3), kill
        assert whole(root, "first", 3) == old
        said = coevo(*RETIRE, "--workspace", root)
        assert (said.code, "already" in said.out) == (0, head == 4), said.err
        assert [each.id for each in Bank(root / "runs/first/bank").active()] == [EDITED.id]
        assert len(history(root, "first")) == 5
        shutil.rmtree(root)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_run_continues_without_it(untouched, workspace):
    """A real run: its entry is retired, it is resumed, and MLflow has every revision."""

    def coevo(*arguments):
        done = runs.coevo(*arguments, workspace=workspace, timeout=600)
        assert done.returncode == 0, done.stderr
        return done.stdout

    coevo("branch", "untouched@3", "retiring")
    rows = json.loads(coevo("bank", "show", "retiring", "--json"))
    gone = max(rows, key=lambda row: (row["retrievals"], row["id"]))["id"]
    coevo("bank", "retire", "retiring", gone, "--reason", WHY)
    coevo("resume", "retiring", "--iterations", "4")
    story = json.loads(coevo("bank", "why", "retiring", gone, "--json"))
    assert (story["entry"]["retired"], len(runs.states(workspace, "retiring"))) == (5, 7)
    assert 0 < max(each["revision"] for each in story["retrievals"]) <= 3
    assert gone not in {row["id"] for row in json.loads(coevo("bank", "show", "retiring", "--json"))}
    assert runs.published(workspace, "retiring")[-3:] == [4, 5, 6]
    coevo("fsck", "retiring")
