"""A workspace whose path is not plain ASCII, for every test here."""

import pytest


@pytest.fixture
def place(tmp_path):
    place = tmp_path / "my wörk space"
    place.mkdir()
    return place
