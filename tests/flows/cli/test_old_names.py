"""A run whose manifests have old names of metrics reads and continues as one with the current names."""

import json
import re

import pytest
from support import small_run

from coevo.flows import api
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.tasks.run.retire import retire_entry

INCIDENTAL = re.compile(r"\b[0-9a-f]{12}\b|\d{4}-\d\d-\d\d[T ][\d:]+Z?")
"""Commits and times."""


def made(root, older):
    """Two runs; the first is rolled back to revision 1, and a person then retires an entry."""
    small_run.build(root, "other", ["seed=4"], ("0000", None, "1000", "1010"), older=4 - older)
    paths = small_run.build(root, older=older)
    with Lineage.open(paths.lineage, Workspace(root).cache) as lineage:
        bank = Bank(paths.bank)
        lineage.rollback(1, bank)
        retire_entry(small_run.MUG.id, "wrong", "ada", paths, bank, lineage)
        return [sorted(manifest.state["metrics"]) for manifest in lineage.log()]


def told(coevo, root):
    commands = (
        ("log", "first", "--json"), ("log", "first@3"), ("runs",), ("runs", "--json"),
        ("compare", "first@3", "other", "--json"), ("report", "first", "--output", root / "report.html"),
    )  # fmt: skip
    said = [coevo(*command, "--workspace", root) for command in commands]
    assert [each.code for each in said] == [0] * len(commands)
    report = (root / "report.html").read_text()
    return [INCIDENTAL.sub("", text) for text in (*(each.out for each in said[:-1]), report)]


@pytest.mark.full
@pytest.mark.parametrize("older", [2, 4])
def test_a_run_with_old_names_reads_as_one_with_current_names(coevo, tmp_path, older):
    names, renamed = (made(tmp_path / name, count) for name, count in (("now", 0), ("then", older)))
    assert names[1] != renamed[1] == renamed[4]
    assert "success/train" in renamed[1]
    assert names[5] == renamed[5]
    assert told(coevo, tmp_path / "then") == told(coevo, tmp_path / "now")
    now, then = (api.log("first", workspace=tmp_path / name) for name in ("now", "then"))
    assert then[now.columns].equals(now)
    assert json.loads(coevo("log", "first", "--json", "--workspace", tmp_path / "then").out)[1]["success"] == 0.5
    for wrong in (lambda: then["success/train"], lambda: then.iloc[1]["success/train"], lambda: then.loc[1, "spent/x"]):
        with pytest.raises(KeyError, match=r"'(success|spent)/\w+' is now '(agent/success|cost)/\w+'"):
            wrong()
