"""A workspace with runs to read, and the command line called in this process."""

from dataclasses import dataclass

import pytest
from support import small_run

from configs.load import load_recipe
from flows.cli import main
from lineage.workspace import Workspace


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def small_workspace(tmp_path_factory):
    """Runs ``first`` and ``other`` (worse on two of the four panel tasks), ``bankless``, and ``new`` without any
    revision. Nothing may change it."""
    root = tmp_path_factory.mktemp("small workspace")
    small_run.build(root)
    small_run.build(root, "other", ["seed=4", "bank.retrieval.k=1"], ("0000", None, "1000", "1010"))
    small_run.build(root, "bankless", ["bank=null"], panel="q" * 64)
    Workspace(root).create("new", load_recipe(small_run.RECIPE))
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
