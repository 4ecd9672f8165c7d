"""Commands on a run whose older revisions keep no optimizer: none calls that damage, and a refusal is one line."""

import shutil

import pytest
from support import small_run
from support.fsck import fsck

from coevo.configs import sections
from coevo.lineage.lineage import Lineage
from coevo.lineage.objects.cache import Cache
from coevo.lineage.workspace import Workspace
from coevo.tasks.commit import remove_superseded


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of revisions 0 to 3 with ``lineage.optimizer_every=2``: 0, 2 and 3 keep an optimizer."""
    root = tmp_path_factory.mktemp("sparse") / "workspace"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "LARGE_OPTIMIZER", 0)
        run = small_run.build(root, overrides=["lineage.optimizer_every=2"], optimizer=True)
        assert remove_superseded(Workspace(root), run) == 2  # a list and its file
    return root


@pytest.fixture
def workspace(made, tmp_path, monkeypatch, tracking_uri):
    monkeypatch.setattr(sections, "LARGE_OPTIMIZER", 0)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri)
    return shutil.copytree(made, tmp_path / "copy")


def optimizers(root, name="first"):
    """Revisions whose optimizer is in the cache."""
    workspace = Workspace(root)
    with Lineage.open(workspace.run(name).lineage, workspace.cache) as lineage:
        found = [(each.revision, each.artifacts.get("optimizer")) for each in lineage.history.log()]
    return [number for number, content in found if content and Cache(workspace.cache).problem(content) is None]


def ok(coevo, root, *arguments):
    done = coevo(*arguments, "--workspace", root)
    assert (done.code, done.err) == (0, ""), done
    return done.out


def test_fsck_gc_push_and_pull_do_not_call_it_damage(coevo, workspace, tmp_path):
    assert optimizers(workspace) == [0, 2, 3]
    assert [finding for finding in fsck(workspace, "first") if "artifact" in finding.problem] == []
    assert [finding for finding in fsck(workspace) if "optimizer" in finding.problem] == []
    ok(coevo, workspace, "gc", "--apply")
    assert optimizers(workspace) == [0, 2, 3]
    ok(coevo, workspace, "push", tmp_path / "remote")
    ok(coevo, tmp_path / "new", "pull", tmp_path / "remote", "first")
    assert optimizers(tmp_path / "new") == [0, 2, 3]


def test_a_kept_optimizer_that_is_missing_is_still_damage(workspace):
    opened = Workspace(workspace)
    with Lineage.open(opened.run("first").lineage, opened.cache) as lineage:
        content = lineage.history.manifest(2).artifacts["optimizer"]
    Cache(opened.cache).remove([content])
    assert any("optimizer of revision 2 is missing" in finding.problem for finding in fsck(workspace, "first"))


@pytest.mark.parametrize(
    "command", [("rollback", "first", "--to", 1), ("branch", "first@1", "second")], ids=lambda command: command[0]
)
def test_a_revision_without_its_optimizer_is_refused_unless_it_is_left_out(coevo, workspace, command):
    refused = coevo(*command, "--workspace", workspace)
    assert refused.code == 2
    (line,) = refused.err.strip().splitlines()
    assert "choose revision 0" in line or "choose revision 2" in line
    assert line.endswith("--without-optimizer")
    ok(coevo, workspace, *command, "--without-optimizer")
    name = "second" if command[0] == "branch" else "first"
    opened = Workspace(workspace)
    with Lineage.open(opened.run(name).lineage, opened.cache) as lineage:
        head = lineage.history.head()
        assert "optimizer" not in head.artifacts
        assert not lineage.artifacts.path("optimizer").exists()
    assert [finding for finding in fsck(workspace, name) if "optimizer" in finding.problem] == []
