"""Names and places of runs."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import small_run

from coevo.configs.load.load import load_recipe
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.utilities.errors import CoevoError

ROOT = Path(__file__).parents[2]
RECIPE = "homerules-coevo-rl"
OPTIMIZED = """
import sys
from pathlib import Path
from coevo.utilities.errors import CoevoError
from coevo.lineage.fsck.places import check_created
from coevo.lineage.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]))
print(*(finding.problem for finding in check_created(workspace.run("first"))))
try:
    print(workspace.existing("first"))
except CoevoError as error:
    print(error)
"""


@pytest.fixture
def workspace(directory):
    return Workspace(directory)


@pytest.fixture(scope="module")
def config():
    return load_recipe(RECIPE, ["iterations=3"])


@pytest.mark.parametrize("name", ["", ".", "..", "a..b", "a/b", "/etc", "-x", ".x", "a b", "ä", "a\n", "x" * 101])
def test_a_name_that_could_lead_elsewhere_is_refused(workspace, config, name):
    with pytest.raises(CoevoError, match="cannot name a run"):
        workspace.create(name, config)


def test_a_new_workspace_is_private_and_one_that_is_there_keeps_its_mode(tmp_path, config):
    Workspace(tmp_path / "new" / "one").create("first", config)
    (tmp_path / "there").mkdir()
    (tmp_path / "there").chmod(0o755)
    Workspace(tmp_path / "there").create("first", config)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("new/one", "there")]
    assert modes == [0o700, 0o755]


def test_a_relative_workspace_can_be_written_and_read_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    workspace = Workspace(Path("ws"))
    small_run.build(Path("ws"))
    monkeypatch.chdir("/")
    assert workspace.root == tmp_path / "ws"
    with Lineage.open(workspace.existing("first").lineage, workspace.cache) as lineage:
        assert lineage.recover(Bank(workspace.existing("first").bank)).tags == ()
        assert lineage.history.head().revision == 3


def test_runs_are_listed_in_the_order_of_creation(workspace, config, tmp_path):
    for name in ("z", "a", "m.2_x-"):
        workspace.create(name, config)
    assert [run.name for run in workspace.runs()] == ["z", "a", "m.2_x-"]
    shutil.copytree(workspace.root, tmp_path / "copy")
    assert [run.name for run in Workspace(tmp_path / "copy").runs()] == ["z", "a", "m.2_x-"]


def test_a_clock_that_was_set_back_does_not_change_their_order(workspace, config, monkeypatch):
    workspace.create("before", config)
    monkeypatch.setattr("time.time_ns", lambda: 1)
    workspace.create("after", config)
    workspace.create("and-after", config)
    assert [run.name for run in workspace.runs()] == ["before", "after", "and-after"]


def test_numbered_names_go_on_above_the_highest(workspace, config):
    assert workspace.next_name("env-method") == "env-method-1"
    for name in ("env-method-1", "env-method-9", "env-method-extra", "other-12"):
        workspace.create(name, config)
    assert workspace.next_name("env-method") == "env-method-10"


def test_a_name_is_given_once(workspace, config):
    def ask(_):
        try:
            return workspace.create("same", config)
        except CoevoError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    assert sum(not isinstance(answer, str) for answer in answers) == 1
    assert [run.name for run in workspace.runs()] == ["same"]


def test_a_run_records_what_was_given_beside_its_recipe_and_reads_nothing_else(workspace, config):
    paths = workspace.create("given", config)
    assert paths.overrides == ()
    paths.record_overrides(["seed=3", "bank.every=2"])
    assert workspace.existing("given").overrides == ("seed=3", "bank.every=2")
    for damaged in (b"", b"{}", b"\xff", b"[" * 100_000, b'"a"'):
        (paths.root / "overrides.json").write_bytes(damaged)
        assert paths.overrides == ()


def test_a_missing_run_names_those_there_are(workspace, config):
    with pytest.raises(CoevoError, match=r"No run 'b'\. There are none yet: start one with `coevo run` \(/.*\)"):
        workspace.existing("b")
    workspace.create("a", config)
    with pytest.raises(CoevoError, match=r"No run 'b'\. `coevo runs` lists them; the latest are a \(/.*\)"):
        workspace.existing("b")
    for name in ("first", "c", "d", "e", "f"):
        workspace.create(name, config)
    said = r"No run 'frist'\. Did you mean 'first'\? `coevo runs` lists them; the latest are first, c, d, e, f \("
    with pytest.raises(CoevoError, match=said):
        workspace.existing("frist")
    assert workspace.existing("a") == workspace.run("a")


def test_configuration_survives_and_can_be_lengthened(workspace, config):
    run = workspace.create("a", config)
    assert run.read_config() == config
    run.write_config(config.model_copy(update={"iterations": 9}))
    assert run.read_config().iterations == 9


@pytest.mark.parametrize(("text", "says"), [("{", "not readable as JSON"), ('{"seed": 1, "x": 2}', "config.json")])
def test_a_damaged_configuration_is_one_line(workspace, config, text, says):
    run = workspace.create("a", config)
    run.config.write_text(text)
    with pytest.raises(CoevoError, match=says) as caught:
        run.read_config()
    assert "\n" not in str(caught.value)


def test_clearing_leaves_empty_directories(workspace, config):
    run = workspace.create("a", config)
    for _ in range(2):
        run.clear_staging()
        assert list(run.staging.iterdir()) == list(run.scratch.iterdir()) == []
        (run.staging / "policy").mkdir()
        run.reference.mkdir()


def test_a_workspace_that_cannot_be_written_is_one_line(tmp_path, config):
    (tmp_path / "file").touch()
    with pytest.raises(CoevoError, match="Not a directory: name another directory with --workspace"):
        Workspace(tmp_path / "file").create("a", config)


def test_a_run_that_does_not_say_when_it_was_created_is_named(workspace, config):
    run = workspace.create("first", config)
    run.created.write_text("yesterday\n")
    with pytest.raises(CoevoError, match=r"created: 'yesterday' is not a time in ns: see `coevo fsck first`"):
        _ = run.moment
    workspace.create("second", config)
    assert [one.name for one in workspace.runs()] == ["second"]


def test_it_is_named_where_python_leaves_out_assertions_too(workspace, config):
    workspace.create("first", config).created.write_text("yesterday\n")
    command = [sys.executable, "-O", "-c", OPTIMIZED, workspace.root]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found, refused = done.stdout.splitlines()
    assert found == "created is not a number of nanoseconds"
    assert "'yesterday' is not a time in ns" in refused


@pytest.mark.parametrize("name", ["what?", "what?/runs of mine"])
def test_a_path_that_no_uri_of_a_database_can_have_is_refused(tmp_path, name):
    with pytest.raises(CoevoError, match=r"a workspace with '\?' in its path .*: name another"):
        Workspace(tmp_path / name)
    (tmp_path / "what?").mkdir()
    (tmp_path / "link").symlink_to("what?")
    with pytest.raises(CoevoError, match="name another"):
        Workspace(tmp_path / "link")
    assert Workspace(tmp_path / "a #1 %3f").root == tmp_path / "a #1 %3f"


def used(run):
    """The run, once a process has held its lock."""
    with writer_lock(run):
        return run


def test_a_run_that_failed_before_its_first_revision_gives_its_name_back(workspace, config):
    run = used(workspace.create("first", config))
    run.engine.mkdir()
    other = workspace.create("first", load_recipe(RECIPE, ["iterations=4"]))
    assert other.read_config().iterations == 4
    assert not run.engine.exists()


KEPT = {
    "not yet used by its process": lambda run: run,
    "a published revision": lambda run: used(run).published.write_text("{}"),
    "on another disk": lambda run: run.root.symlink_to(used(run).root.rename(run.root.parents[1] / "disk")),
    "an answer of its writer model": lambda run: used(run).journal.write_text("{}"),
    "an object of its history": lambda run: (
        (run.lineage / ".git/objects/pack").mkdir(parents=True)
        or (used(run).lineage / ".git/objects/pack/x").write_text("")
    ),
}


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT)
def test_a_run_that_may_hold_something_keeps_its_name(workspace, config, keep):
    keep(workspace.create("first", config))
    with pytest.raises(CoevoError, match=r"run 'first' is already in .*: resume it"):
        workspace.create("first", config)


def test_a_run_in_use_or_continued_meanwhile_keeps_its_name(workspace, config):
    with (
        writer_lock(workspace.create("first", config)),
        pytest.raises(CoevoError, match="the process that works on it ends"),
    ):
        workspace.create("first", config)
    with pytest.raises(CoevoError, match="'first' was continued meanwhile"), workspace.staged("first", config):
        workspace.run("first").journal.write_text("{}")
    assert workspace.run("first").journal.exists()
