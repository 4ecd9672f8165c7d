"""The durability benchmark on a small bank: real stores, real commands."""

import pytest

from benchmarks.running import durability, large_run
from benchmarks.running.durability import bank_figures, history_figures
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank


@pytest.mark.full
def test_figures_of_a_bank(tmp_path):
    workspace = Workspace(tmp_path)
    figures = bank_figures(workspace, 300)
    assert figures["entries"] == 300
    assert set(durability.TARGETS) - {"resume_seconds"} <= set(figures)
    assert all(value > 0 for value in figures.values())


def test_the_run_has_a_revision_for_each_change(tmp_path):
    paths = large_run.build(Workspace(tmp_path), "large", 300)
    assert Bank(paths.bank).size() == 400
    with Lineage.open(paths.lineage, tmp_path / "cache") as lineage:
        assert [manifest.revision for manifest in lineage.history.log()] == [0, 1, 2, 3]


def test_figures_of_a_history(tmp_path):
    histories = history_figures(Workspace(tmp_path), 600, 3)
    assert {history["revisions"] for history in histories.values()} == {3}
    assert all(0 < history["added_bytes_median"] <= history["allowed_bytes"] for history in histories.values())
