"""Where a run stands: what has changed, and which episodes the writer has yet to see."""

import re
import shutil

import pytest

from coevo.lineage.lineage import Lineage
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.revision.code_version import code_revision, packages
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.tasks.publish.reporter import Silent
from coevo.tasks.run.changes import check_unchanged
from coevo.tasks.run.open_run import episodes_since, open_session
from coevo.utilities.errors import CoevoError


@pytest.fixture
def run(built, tmp_path):
    workspace = Workspace(shutil.copytree(built, tmp_path, dirs_exist_ok=True))
    paths = workspace.existing("first")
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        yield paths, lineage


def test_a_changed_setting_is_refused_by_name_unless_accepted(run):
    paths, lineage = run
    config = paths.read_config()
    changed = config.model_copy(update={"seed": config.seed + 1})
    with pytest.raises(CoevoError) as refused:
        check_unchanged(changed, lineage.history.head(), "first", accept=False)
    assert f"seed: {config.seed} -> {config.seed + 1}" in str(refused.value)
    assert "--accept-change" in str(refused.value)
    assert any("seed" in change for change in check_unchanged(changed, lineage.history.head(), "first", accept=True))


def test_packages_of_other_versions_are_refused_by_name_unless_accepted(run):
    paths, lineage = run
    head = lineage.history.head()
    config = paths.read_config()
    older = Manifest.of({**head.state, "code": code_revision(), "packages": {**packages(), "torch": "2.12.0"}}, {})
    change = f"packages.torch: 2.12.0 -> {packages()['torch']}"
    with pytest.raises(CoevoError, match=re.escape(f"run 'first' has changed since its last revision: {change};")):
        check_unchanged(config, older, "first", accept=False)
    assert check_unchanged(config, older, "first", accept=True) == [change]


def test_a_run_that_does_not_say_its_packages_has_not_changed(run):
    paths, lineage = run
    head = lineage.history.head()
    assert "packages" not in head.state
    unsaid = Manifest.of({**head.state, "code": code_revision()}, {})
    assert check_unchanged(paths.read_config(), unsaid, "first", accept=False) == []


def test_a_new_length_is_no_change(run):
    paths, lineage = run
    longer = paths.read_config().model_copy(update={"iterations": 99})
    found = check_unchanged(longer, lineage.history.head(), "first", accept=True)
    assert not [change for change in found if not change.startswith("code:")]


def test_a_run_without_revisions_has_not_changed(run):
    assert check_unchanged(run[0].read_config(), None, "first", accept=False) == []


def test_the_writer_sees_what_came_since_its_last_firing(run, tmp_path):
    _, lineage = run
    found = episodes_since(lineage, lineage.history.head(), 1, tmp_path / "scratch")
    assert [episode.revision for episode in found] == [2] * 4 + [3] * 4


def test_it_does_not_see_what_was_rolled_back(run, tmp_path):
    paths, lineage = run
    lineage.rollback(2, Bank(paths.bank))
    found = episodes_since(lineage, lineage.history.head(), 1, tmp_path / "scratch")
    assert [episode.revision for episode in found] == [2] * 4


def test_a_run_whose_cursor_is_ahead_is_not_opened(run, tmp_path):
    paths, _ = run
    Cursor(paths.published).advance(9)
    said = "says that revision 9 is published, but the last is 3: repair it with `coevo fsck first --repair`"
    with pytest.raises(CoevoError, match=said), open_session("first", tmp_path, Silent(), accept_change=True):
        raise AssertionError("it is open")
