"""The finished run that the package brings: it unpacks to what was packed, and is what a person finds beside it."""

from support import small_run
from support.runs import states

from coevo.flows.api import bank, log
from coevo.flows.history.revision_reference import reading
from coevo.flows.report.facts import facts
from coevo.flows.report.page import page
from coevo.flows.sample import ARCHIVE, FOLDER, RUN
from coevo.flows.sample.open_sample import unpack
from coevo.flows.sample.pack import pack
from coevo.lineage.workspace import Workspace


def told(directory, run):
    """Text of its report."""
    with reading(run, directory) as opened:
        return page(facts(opened, directory))


def test_a_run_reads_elsewhere_as_it_did_though_it_has_no_weights(tmp_path):
    here = Workspace(tmp_path / "here")
    paths = small_run.build(here.root)
    pack(paths, here, tmp_path / "run.tar.xz")
    there = unpack(tmp_path / "there", tmp_path / "run.tar.xz")
    assert told(there, "first") == told(here, "first")
    for table in (log, bank):
        assert table("first", workspace=there.root).equals(table("first", workspace=here.root))
    policy = states(here.root, "first")[-1]["artifacts"]["policy"].removesuffix(".dir")
    assert list(here.cache.rglob(f"{policy[2:]}*"))
    assert not list(there.cache.rglob(f"{policy[2:]}*"))


def test_the_archive_is_the_same_whenever_it_is_made(tmp_path):
    here = Workspace(tmp_path / "here")
    paths = small_run.build(here.root)
    for name in ("one", "two"):
        paths.created.touch()
        pack(paths, here, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_what_is_there_is_left_alone(tmp_path):
    workspace = unpack(tmp_path)
    (workspace.root / "mine").write_text("kept")
    assert unpack(tmp_path) == workspace
    assert (workspace.root / "mine").read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.lock", FOLDER]


def test_the_sample_is_small_and_finished(tmp_path):
    assert ARCHIVE.stat().st_size < 1_500_000
    workspace = unpack(tmp_path)
    (run,) = workspace.runs()
    last = states(workspace.root, run.name)[-1]
    assert (run.name, last["iteration"]) == (RUN, run.read_config().iterations)
    assert {"seen-houses", "no-bank"} <= set(last["panels"])
