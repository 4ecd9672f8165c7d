"""A workspace with runs to read, and the command line called in this process."""

import shutil
from dataclasses import dataclass

import pytest
from support import small_run

from coevo.configs.load.load import load_recipe
from coevo.flows.cli.app import main
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import Workspace


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def small_workspace(tmp_path_factory):
    """Runs ``first`` and ``other`` (worse on two of the four panel tasks, at twice the tokens), ``bankless``, and
    ``new`` without any revision. Nothing may change it."""
    root = tmp_path_factory.mktemp("small workspace")
    small_run.build(root)
    small_run.build(root, "other", ["seed=4", "bank.retrieval.k=1"], ("0000", None, "1000", "1010"), tokens=200)
    small_run.build(root, "bankless", ["bank=null"], panel="q" * 64, tokens=None)
    Workspace(root).create("new", load_recipe(small_run.RECIPE))
    return root


@pytest.fixture(scope="session")
def tracking_uri(tmp_path_factory):
    """One MLflow database for the tests that do not look into it: making one takes seconds."""
    return f"sqlite:///{tmp_path_factory.mktemp('tracking') / 'mlflow.db'}"


@pytest.fixture
def copied(small_workspace, tmp_path, coevo, monkeypatch, tracking_uri):
    """A copy of the workspace that may be changed, all of it published; a run does not mind having been moved."""
    root = tmp_path / "copy"
    shutil.copytree(small_workspace, root)
    for run in ("first", "other", "bankless"):
        Cursor(root / "runs" / run / "published.json").advance(3)
    monkeypatch.setenv("COEVO_WORKSPACE", str(root))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri)
    return root


@pytest.fixture
def coevo(capsys, small_workspace, monkeypatch):
    """Run a command; without ``--workspace`` in the workspace that nothing may change."""
    monkeypatch.setenv("COEVO_WORKSPACE", str(small_workspace))

    def call(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        return Result(stopped.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def eighty_columns(monkeypatch):
    """Tables as wide as a usual terminal."""
    monkeypatch.setattr("coevo.flows.console.output.PIPED_WIDTH", 80)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def refused(coevo):
    """Run a command that is refused in one line, which is returned."""

    def call(*arguments, workspace=None):
        done = coevo(*arguments, *(("--workspace", workspace) if workspace else ()))
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), (arguments, done.err)
        assert done.err.startswith("coevo: "), arguments
        assert done.err[:-1].isprintable(), arguments
        return done.err

    return call
