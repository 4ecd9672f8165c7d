"""A workspace whose path is not plain ASCII, and a run in it, for every test here."""

import shutil

import pytest
from support.lineage_driver import play, run_in


@pytest.fixture
def directory(tmp_path):
    directory = tmp_path / "my wörk space"
    directory.mkdir()
    return directory


@pytest.fixture(scope="session")
def played(tmp_path_factory):
    """A workspace with a run of four revisions, 0 to 3. Nothing may change it."""
    directory = tmp_path_factory.mktemp("played")
    play(directory, 4)
    return directory


@pytest.fixture
def run(played, directory):
    """A copy of the run, in ``directory``."""
    shutil.copytree(played, directory, dirs_exist_ok=True)
    return run_in(directory)
