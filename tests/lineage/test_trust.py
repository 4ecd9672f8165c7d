"""Folders of a run's own modules: they are searched last, and one that is not on this machine is named."""

import sys

import pytest

from coevo.configs.load.load import load_recipe
from coevo.lineage.trust import extend_path
from coevo.utilities.errors import CoevoError


def test_folders_come_after_all_others(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    extend_path(load_recipe("homerules-coevo-rl", [f"python_path=[{tmp_path}]"]))
    assert sys.path[-1] == str(tmp_path)


def test_one_that_is_elsewhere_is_named_with_what_to_do(tmp_path):
    config = load_recipe("homerules-coevo-rl", [f"python_path=[{tmp_path / 'away'}]"])
    with pytest.raises(CoevoError, match=r"away is no folder on this machine: .* `coevo branch RUN NAME python_path="):
        extend_path(config)
