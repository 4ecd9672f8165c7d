"""A workspace whose path is not plain ASCII, and a run in it, for every test here."""

import shutil

import pytest
from support.lineage_driver import play, run_in


@pytest.fixture
def place(tmp_path):
    place = tmp_path / "my wörk space"
    place.mkdir()
    return place


@pytest.fixture(scope="session")
def played(tmp_path_factory):
    """A workspace with a run of four revisions, 0 to 3. Nothing may change it."""
    place = tmp_path_factory.mktemp("played")
    play(place, 4)
    return place


@pytest.fixture
def run(played, place):
    """A copy of the run, in ``place``."""
    shutil.copytree(played, place, dirs_exist_ok=True)
    return run_in(place)
