"""The retrieval benchmark at a size of milliseconds."""

import json

import pytest

from benchmarks.bench import Bench
from benchmarks.speed import retrieval_sizes, retrieval_speed
from coevo.lineage.workspace import Workspace


@pytest.fixture
def small(monkeypatch):
    sizes = {"ENTRIES": 60, "FRESH": 5, "QUESTIONS": 12, "REFRESHES": 2, "CLUSTERS": 20, "LOOPS": 1}
    for name, value in sizes.items():
        monkeypatch.setattr(retrieval_speed, name, value)
    monkeypatch.setattr(retrieval_sizes, "SIZES", ())


def test_every_kind_has_a_row_and_the_clusters_are_those_of_an_exact_scan(tmp_path, capsys, small):
    retrieval_speed.run(Bench(tmp_path / "cells", Workspace(tmp_path / "workspace")))
    cells = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "cells").glob("*.json")}
    assert set(cells) == {name.replace(" ", "-") for name in retrieval_speed.TARGETS} | {"clusters"}
    assert cells["clusters"]["same"]
    shown = capsys.readouterr().out
    assert all(name in shown for name in retrieval_speed.TARGETS)
    assert all(cell["lookup_ms"] > 0 for cell in cells.values())


@pytest.mark.parametrize("method", ["tfidf", "bm25", "scikit-learn", "bm25s"])
@pytest.mark.parametrize("words", retrieval_sizes.COMMONNESS)
def test_a_size_is_measured_and_its_ranking_is_that_of_all_scores(method, words):
    found = retrieval_sizes.measure(method, words, 400)
    assert found["query_ms"] > 0
    assert found["gib"] > 0
    if method in retrieval_sizes.PEERS:
        assert found["same"]
        assert found["refresh_ms"] > 0
