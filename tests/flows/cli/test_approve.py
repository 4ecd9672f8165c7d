"""Pending decisions are listed and shown, a decision reports its effect, and anything else is refused in one line."""

import json
import shutil
from getpass import getuser

import pytest
from support import asking

import coevo as public
from coevo.flows import pending
from coevo.flows.pending import Waiting
from coevo.lineage.lock import in_use, writer_lock
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    root = tmp_path_factory.mktemp("asked")
    asking.play(root)
    return root


@pytest.fixture
def waiting(asked, tmp_path, coevo, monkeypatch, tracking_uri):
    """A workspace whose run waits at revision 1, all of it published."""
    root = tmp_path / "copy"
    shutil.copytree(asked, root)
    Cursor(root / "runs/run/published.json").advance(1)
    monkeypatch.setenv("COEVO_WORKSPACE", str(root))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri)
    return root


def test_what_waits_is_listed_with_what_it_would_change(coevo, waiting):
    (row,) = json.loads(coevo("approve", "--list", "--json").out)
    assert (row["what"], row["kind"], row["revision"]) == ("run@1", "admission", 1)
    assert row["added"]
    assert row["retired"] == row["edited"] == []
    assert len(row["replay"]) == 1
    shown = coevo("approve", "--list").out
    assert "run@1" in shown
    assert f"{row['replay'][0]['difference']:.3f}" in shown


def test_the_list_fits_eighty_columns_and_breaks_no_word(coevo, waiting, eighty_columns, monkeypatch):
    (waiting / "runs/run").rename(waiting / "runs/homerules-coevo-rl-1")
    (row,) = json.loads(coevo("approve", "--list", "--json").out)
    gate = {"difference": "+0.2188 [+0.1472, +0.2903]"}
    listed = [*pending.waiting(Workspace(waiting)), Waiting("guarded/12", "promotion", None, {"gate": gate})]
    monkeypatch.setattr(pending, "waiting", lambda directory: listed)
    shown = coevo("approve", "--list").out
    words = {"homerules-coevo-rl-1@1", "admission", "guarded/12", "promotion", "[+0.1472,", "+0.2903]"}
    assert words | set(row["since"].split("T")) <= set(shown.split())
    assert max(map(len, shown.splitlines())) <= 80


def test_one_of_them_is_shown_with_replay_and_episodes(coevo, waiting):
    (row,) = json.loads(coevo("approve", "--list", "run", "--json").out)
    page = coevo("approve", "--list", "run").out
    assert "run@1" in page
    assert all(entry["id"] in page for entry in row["added"])
    assert "## Replay" in page
    assert "## Episode" in page
    assert not in_use(Workspace(waiting).existing("run"))


def test_yes_and_no_say_what_they_did(coevo, waiting):
    (row,) = json.loads(coevo("approve", "--list", "--json").out)
    said = json.loads(coevo("approve", "run@1", "--by", "Ada L.", "--json").out)
    assert said == {
        "what": "run@2", "kind": "admission", "approved": True, "by": "Ada L.", "revision": 2,
        "admitted": len(row["added"]), "retired": 0, "size": len(row["added"]),
    }  # fmt: skip
    assert coevo("approve", "--list").out == "Nothing is pending approval.\n"
    assert "approved by Ada L." in json.loads(coevo("log", "run", "--json").out)[-1]["what"]
    coevo("rollback", "run", "--to", 1)
    refused = coevo("approve", "run", "--reject")
    assert (refused.code, "run@4 leaves the bank unchanged" in refused.out) == (0, True)
    assert f"turned down by {getuser()}" in json.loads(coevo("log", "run", "--json").out)[-1]["what"]
    assert json.loads(coevo("bank", "show", "run", "--json").out) == []


def test_python_sees_what_waits_and_decides(waiting):
    (what,) = public.waiting().index
    assert public.waiting().loc[what, "kind"] == "admission"
    assert public.waiting().loc[what, "says"]["added"]
    assert public.approve(what, reject=True, by="ada") == "run@2"
    assert public.waiting().empty
    with pytest.raises(CoevoError, match="has nothing to approve"):
        public.approve("run")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("approve",), "name a run or a version"),
        (("approve", "run", "--list", "--reject"), "--list and --reject cannot be combined"),
        (("approve", "run@0"), "run@0 is not pending, run@1 is"),
        (("approve", "elsewhere"), "No run 'elsewhere'"),
        (("resume", "run"), "run@1 waits for approval: coevo approve --list run"),
    ],
)
def test_mistakes_are_one_line(refused, waiting, arguments, says):
    assert says in refused(*arguments)


def test_a_run_in_use_is_not_decided_about(coevo, waiting):
    with writer_lock(Workspace(waiting).existing("run")):
        result = coevo("approve", "run")
    assert (result.code, "in use" in result.err) == (2, True)


def test_a_run_whose_cursor_is_wrong_is_not_decided_about(coevo, refused, waiting):
    (waiting / "runs/run/published.json").write_text("")
    result = refused("approve", "run")
    assert result.endswith("published.json is damaged: repair it with `coevo fsck run --repair`\n")
    assert len(json.loads(coevo("log", "run", "--json").out)) == 2
