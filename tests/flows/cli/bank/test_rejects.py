"""Refused parts of a writer's answers: shown from the revisions that led to one, each once, and as plain text."""

import json
from types import SimpleNamespace

import pytest

from coevo.flows.cli.bank.rejects import _rows
from coevo.lineage.revision.manifest import Manifest
from coevo.memory.writers.model.answer_lessons import REASONS
from coevo.memory.writers.writer import Reject
from coevo.tasks.writing.artifact import FOLDER, KeptWriting, write_writing


def test_a_run_whose_writer_asks_no_model_has_none(copied, coevo):
    said = coevo("bank", "rejects", "first").out
    assert "No part of a writer model's answer was refused up to first@" in said
    assert "`coevo bank log first --rejected`" in said
    assert json.loads(coevo("bank", "rejects", "first", "--json").out) == []


@pytest.fixture
def opened(tmp_path):
    """Revisions 1 to 3 with a refused part each, and 4, a rollback to 1; 2 was dropped."""
    for number in (1, 2, 3):
        refused = Reject("contrast", (f"e{number}",), list(REASONS)[number], f"part {number}")
        write_writing(KeptWriting(rejects=(refused,)), tmp_path / str(number))

    def manifest(number, content, parent, restored=None):
        state = {"revision": number, "parent": parent, "restored_from": restored, "artifacts": {FOLDER: content}}
        return Manifest(state, {})

    def files(manifest, folder):
        return {path.name: path for path in (tmp_path / manifest.artifacts[folder] / folder).iterdir()}

    history = [Manifest({"revision": 0, "parent": None, "restored_from": None, "artifacts": {}}, {})]
    history += [manifest(number, str(number), number - 1) for number in (1, 2, 3)]
    lineage = SimpleNamespace(
        history=SimpleNamespace(retained=lambda: [0, 1, 3, 4]), artifacts=SimpleNamespace(files=files)
    )
    return lambda last: SimpleNamespace(lineage=lineage, history=[*history, manifest(4, "1", 3, 1)][: last + 1])


@pytest.mark.parametrize(("last", "revisions"), [(0, []), (1, [1]), (2, [1]), (3, [1, 3]), (4, [1])])
def test_each_revision_that_led_to_one_shows_its_own(opened, last, revisions):
    rows = list(_rows(opened(last)))
    assert [row["revision"] for row in rows] == revisions
    assert [row["text"] for row in rows] == [f"part {number}" for number in revisions]
